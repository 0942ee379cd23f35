import {
  type Authorization,
  type AuthSection,
  configHash,
  type ProxyConfig,
  type ProxyRoute,
  type ResolvedAuthServer,
  type ResolvedRoute,
  type ResolvedTelemetry,
  route as routeSchema,
  type RouteSettings,
} from '../../resources/index.ts'
import { anchorAuthSection, anchored } from './file-paths.ts'
import type { Backend } from '../workloads/backends.ts'
import type { Workload } from '../workloads/workload.ts'
import { once } from '../../fields/index.ts'
import type { Located, Problem, ProblemOptions } from '../documents/problem.ts'
import { fileOfBundle, type FoundCallers } from './resolve-manifest-callers.ts'
import type { RouteTarget } from '../../core/index.ts'

/** A route of any document before its references and rules are checked. */
export interface DraftRoute {
  readonly origin: 'ProxyConfig' | 'manifest' | 'command line'
  readonly settings: Omit<ResolvedRoute, 'auth' | 'credentials' | 'callers' | 'authServer' | 'resourceUrl'>
  /** Name of its MCPExternalAuthConfig; undefined for a manifest without one. */
  readonly authName: string | undefined
  /** Other configs for some requests, by name. */
  readonly credentials?: ProxyRoute['credentials']
  /** The authorization server selected by the route itself. */
  readonly authServer: AuthServerChoice | undefined
  /** The `auth` section of the route itself. */
  readonly ownCallers: AuthSection | undefined
  /** Its callers come from an invalid document, which has been reported. Default: false. */
  readonly hasInvalidCallers?: boolean
  readonly resourceUrl: string | undefined
  readonly source: { readonly file: string; readonly line: number }
  /** A problem with one field of the route. */
  problem(field: RouteField, message: string, options?: ProblemOptions): Problem
}

/** An authorization server by the name of its MCPExternalAuthConfig, or embedded in the document that uses it. */
export type AuthServerChoice = { readonly name: string } | { readonly own: ResolvedAuthServer }

export type RouteField =
  | 'path'
  | 'name'
  | 'target'
  | 'externalAuthConfigRef'
  | 'authServerRef'
  | 'auth'
  | 'resourceUrl'
  | 'requiredScopes'
  | 'headerForward'
  | 'authorization'
  | 'credentials'

/** Route `index` of a ProxyConfig. */
export function routeOfProxy(proxy: Located<ProxyConfig>, route: ProxyRoute, index: number): DraftRoute {
  const base = ['spec', 'routes', index]
  const { externalAuthConfigRef, authServerRef, auth, resourceUrl, credentials, ...settings } = route
  return {
    origin: 'ProxyConfig',
    settings: settingsOf(settings, proxy.file, false),
    authName: externalAuthConfigRef.name,
    credentials,
    authServer: authServerRef,
    ownCallers: auth === undefined ? undefined : anchorAuthSection(auth, proxy.file),
    resourceUrl,
    source: { file: proxy.file, line: proxy.line },
    problem: (field, message, options) => proxy.problem([...base, ...PATHS[field]], message, options),
  }
}

const PATHS: Readonly<Record<RouteField, readonly string[]>> = {
  path: ['path'],
  name: ['name'],
  target: ['target'],
  externalAuthConfigRef: ['externalAuthConfigRef', 'name'],
  authServerRef: ['authServerRef', 'name'],
  auth: ['auth'],
  resourceUrl: ['resourceUrl'],
  requiredScopes: ['requiredScopes'],
  headerForward: ['headerForward'],
  authorization: ['authorization'],
  credentials: ['credentials'],
}

/** Settings that a manifest takes from other documents. */
interface ReferredSettings {
  readonly telemetry: ResolvedTelemetry | undefined
  readonly authorization: Authorization | undefined
}

/**
 * Converts a backend of a manifest into a route (decisions §7): prefix `/` for a single remote server, else
 * `/<name>`.
 */
export function routeOfManifest(
  manifest: Located<Workload>,
  backend: Backend,
  isOnly: boolean,
  { section: ownCallers, isInvalid }: FoundCallers,
  { telemetry, authorization }: ReferredSettings,
  secretsDirectory: string,
): DraftRoute {
  const { kind, authServer, callers, settings, caBundle } = manifest.document
  const resourceUrl =
    manifest.document.resourceUrl ??
    (ownCallers === undefined ? undefined : callers?.resourceUrl) ??
    manifest.document.externalUrl
  const { name, url, urlPath, externalAuth } = backend
  const paths: Partial<Record<RouteField, readonly PropertyKey[]>> = {
    target: urlPath,
    externalAuthConfigRef: (externalAuth ?? authServer)?.path ?? ['spec'],
    authServerRef: authServer?.path ?? ['spec', 'authServerConfig'],
    auth: callers?.path ?? ['spec'],
    resourceUrl: ['spec', 'resourceUrl'],
    headerForward: ['spec', 'headerForward'],
    authorization: ['spec', 'toolConfigRef'],
  }
  const isVirtual = kind === 'VirtualMCPServer'
  return {
    origin: 'manifest',
    settings: {
      ...defaultSettings(name, isOnly && !isVirtual ? '/' : `/${name}`, url, manifest.file, {
        ...settings,
        authorization,
        targetTls: caBundle && { caCertPath: fileOfBundle(caBundle, secretsDirectory), insecureSkipVerify: false },
      }),
      telemetry,
    },
    // An authorization server alone means that the backend gets the token of its first upstream (authserver.md §2.3).
    authName: (externalAuth ?? authServer)?.name,
    authServer: externalAuth === undefined ? ownServer(manifest) : (authServer ?? ownServer(manifest)),
    ownCallers,
    hasInvalidCallers: isInvalid,
    // A VirtualMCPServer is one resource; each of its backends is a path below it.
    resourceUrl: isVirtual && resourceUrl !== undefined ? `${resourceUrl.replace(/\/$/, '')}/${name}` : resourceUrl,
    source: { file: manifest.file, line: manifest.line },
    problem: (field, message, options) => manifest.problem(paths[field] ?? ['metadata', 'name'], message, options),
  }
}

/** The server embedded in a VirtualMCPServer, with a name that no MCPExternalAuthConfig can have. */
function ownServer({ document, file, line }: Located<Workload>): AuthServerChoice | undefined {
  const { kind, metadata, ownAuthServer: spec } = document
  if (spec === undefined) return undefined
  const { name, namespace } = metadata
  const hash = configHash(spec)
  return { own: { name: `${namespace}/${kind}/${name}`, namespace, spec, configHash: hash, source: { file, line } } }
}

/** The route of the short form `--target URL --external-auth FILE[#name]`. */
export function routeOfOptions(
  url: string,
  authName: string,
  problem: (message: string, options?: ProblemOptions) => Problem,
): DraftRoute {
  return {
    origin: 'command line',
    settings: defaultSettings(authName, '/', url, '.'),
    authName,
    authServer: undefined,
    ownCallers: undefined,
    resourceUrl: undefined,
    source: { file: '--target', line: 1 },
    problem: (_field, message, options) => problem(message, options),
  }
}

const schemaOfRoute = once(routeSchema)

/** Settings of a route with only a target: the defaults of ProxyConfig. */
function defaultSettings(
  name: string,
  path: string,
  target: string,
  file: string,
  own: RouteSettings & Partial<Pick<ProxyRoute, 'authorization' | 'targetTls'>> = {},
): DraftRoute['settings'] {
  const {
    externalAuthConfigRef: _,
    credentials: _none,
    ...defaults
  } = schemaOfRoute().parse({
    name: 'defaults',
    path: '/',
    target,
    externalAuthConfigRef: { name: 'none' },
  })
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  return settingsOf({ ...defaults, ...given, name, path }, file, true)
}

/**
 * The settings of a route besides its references. `isManifest`: requests use exactly the path of the target if it has
 * one.
 */
function settingsOf(
  route: Omit<ProxyRoute, 'externalAuthConfigRef' | 'credentials'>,
  file: string,
  isManifest: boolean,
): DraftRoute['settings'] {
  const target = resolveTarget(route.target)
  const { targetTls: tls } = route
  const files = tls === undefined ? {} : anchored(tls, ['caCertPath', 'clientCertFile', 'clientKeyFile'], file)
  return {
    ...route,
    exactTarget: isManifest && target.path !== '/',
    target,
    telemetry: undefined,
    targetTls: tls === undefined ? undefined : { ...tls, ...files },
  }
}

/**
 * Splits a target URL as it is sent: path and query exactly as written (decisions §7, Path), host as in a Host
 * header. `url` has passed the schema.
 */
function resolveTarget(url: string): RouteTarget {
  const { host, protocol } = new URL(url)
  const [, path = '', query = ''] = /^https?:\/\/[^/?]+([^?]*)\??(.*)$/.exec(url) ?? []
  return { origin: `${protocol}//${host}`, host, path: path === '' ? '/' : path, query }
}
