import type { AuthSection } from './auth-section.ts'
import { anchorAuthSection, anchored } from './file-paths.ts'
import type { Located, Problem, ProblemOptions } from './problem.ts'
import type { ProxyConfig, ProxyRoute } from './proxy-config.ts'
import { route as routeSchema } from './proxy-config.ts'
import { resolveTarget } from './resolve-target.ts'
import type { ResolvedRoute } from './resolved.ts'
import type { Workload } from './workloads.ts'

/** A route before its references and rules are looked at, whichever document it comes from. */
export interface DraftRoute {
  readonly origin: 'ProxyConfig' | 'manifest' | 'command line'
  readonly settings: Omit<ResolvedRoute, 'auth' | 'callers' | 'resourceUrl'>
  /** Name of its MCPExternalAuthConfig; undefined for a manifest that has none. */
  readonly authName: string | undefined
  /** The authorization server that a manifest asks for. */
  readonly authServerName: string | undefined
  /** The `auth` section of the route itself. */
  readonly ownCallers: AuthSection | undefined
  readonly resourceUrl: string | undefined
  readonly source: { readonly file: string; readonly line: number }
  /** A problem with one field of the route. */
  problem(field: RouteField, message: string, options?: ProblemOptions): Problem
}

export type RouteField =
  'path' | 'name' | 'target' | 'externalAuthConfigRef' | 'auth' | 'resourceUrl' | 'requiredScopes'

/** Route `index` of a ProxyConfig. */
export function routeOfProxy(proxy: Located<ProxyConfig>, route: ProxyRoute, index: number): DraftRoute {
  const base = ['spec', 'routes', index]
  return {
    origin: 'ProxyConfig',
    settings: settingsOf(route, proxy.file, false),
    authName: route.externalAuthConfigRef.name,
    authServerName: undefined,
    ownCallers: route.auth === undefined ? undefined : anchorAuthSection(route.auth, proxy.file),
    resourceUrl: route.resourceUrl,
    source: { file: proxy.file, line: proxy.line },
    problem: (field, message, options) => proxy.problem([...base, ...PATHS[field]], message, options),
  }
}

const PATHS: Readonly<Record<RouteField, readonly string[]>> = {
  path: ['path'],
  name: ['name'],
  target: ['target'],
  externalAuthConfigRef: ['externalAuthConfigRef', 'name'],
  auth: ['auth'],
  resourceUrl: ['resourceUrl'],
  requiredScopes: ['requiredScopes'],
}

/** A manifest with a remote URL as a route (decisions §7): the prefix `/` when it is the only one, else `/<name>`. */
export function routeOfManifest(manifest: Located<Workload>, url: string, isOnly: boolean): DraftRoute {
  const { metadata, externalAuth, authServer, remote } = manifest.document
  const paths: Partial<Record<RouteField, readonly string[]>> = {
    target: remote?.path ?? ['spec'],
    externalAuthConfigRef: (externalAuth ?? authServer)?.path ?? ['spec'],
  }
  return {
    origin: 'manifest',
    settings: defaultSettings(metadata.name, isOnly ? '/' : `/${metadata.name}`, url, manifest.file),
    authName: externalAuth?.name,
    authServerName: authServer?.name,
    ownCallers: undefined,
    resourceUrl: undefined,
    source: { file: manifest.file, line: manifest.line },
    problem: (field, message, options) => manifest.problem(paths[field] ?? ['metadata', 'name'], message, options),
  }
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
    authServerName: undefined,
    ownCallers: undefined,
    resourceUrl: undefined,
    source: { file: '--target', line: 1 },
    problem: (_field, message, options) => problem(message, options),
  }
}

const ROUTE = routeSchema()

/** Settings of a route that nothing but its target is known of: the defaults of ProxyConfig. */
function defaultSettings(name: string, path: string, target: string, file: string): DraftRoute['settings'] {
  const defaults = ROUTE.parse({ name: 'defaults', path: '/', target, externalAuthConfigRef: { name: 'none' } })
  return settingsOf({ ...defaults, name, path }, file, true)
}

/** `isManifest`: exactly the target's path is sent where it has one. */
function settingsOf(route: ProxyRoute, file: string, isManifest: boolean): DraftRoute['settings'] {
  const target = resolveTarget(route.target)
  const { targetTls: tls } = route
  return {
    name: route.name,
    path: route.path,
    exactTarget: isManifest && target.path !== '/',
    target,
    requiredScopes: route.requiredScopes,
    timeouts: {
      connectMs: route.timeouts.connect,
      firstByteMs: route.timeouts.firstByte,
      idleMs: route.timeouts.idle,
    },
    bufferedBodyBytes: route.limits.bufferedBody,
    sseKeepAliveMs: route.sseKeepAlive,
    http2: route.http2,
    allowUpgrade: route.allowUpgrade,
    targetTls:
      tls === undefined
        ? undefined
        : { ...tls, ...anchored(tls, ['caCertPath', 'clientCertFile', 'clientKeyFile'], file) },
    onMatcherError: route.onMatcherError,
    insecureAllowAnonymous: route.insecureAllowAnonymous,
  }
}
