import path from 'node:path'
import type { ProxyOverrides } from './proxy-overrides.ts'
import { redirectUris, unusedUpstreams } from './upstream-remarks.ts'
import {
  audit as auditSettings,
  type AuthSection,
  listenAddress,
  type ProxyConfig,
  STDOUT,
} from '../../resources/index.ts'
import { anchorAuthSection, anchored, resolveBeside } from './file-paths.ts'
import { ConfigPlaces } from '../documents/config-places.ts'
import { placeTable } from '../documents/place-table.ts'
import { defaultSettings, draftRoutes, listenOf } from './draft-routes.ts'
import type { Loaded } from '../documents/loaded.ts'
import { DEFAULT_NAMESPACE, httpUrl, isLoopbackBind, once } from '../../fields/index.ts'
import { fileProblem, type Located, type Problem, renderProblem } from '../documents/problem.ts'
import { resolveConnections, writtenConnections } from './resolve-connections.ts'
import { inspectorOf } from './resolve-inspector.ts'
import { resolveRoutes } from './resolve-routes.ts'
import type { ResolvedProxy } from './resolved-proxy.ts'
import { refusedHttp } from '../documents/warnings.ts'

const listenSchema = once(listenAddress)

export type ProxyResult =
  | {
      readonly config: ResolvedProxy
      readonly notes: readonly Problem[]
      /** Warnings of the configuration, with their locations. */
      readonly warnings: readonly Problem[]
      readonly problems?: undefined
    }
  | {
      readonly problems: readonly Problem[]
      readonly config?: undefined
      readonly notes?: undefined
      readonly warnings?: undefined
    }

/**
 * The configuration of a proxy process for these files: resolves references, checks rules between documents, and
 * applies bind and callers (decisions §2.1, §7). Otherwise returns every problem, including those of loading; the
 * reason is `type_not_runnable` if a route uses a type that this version only loads.
 */
export function resolveProxy(loaded: Loaded, overrides: ProxyOverrides = {}): ProxyResult {
  const problems: Problem[] = [...loaded.problems, ...optionProblems(overrides)]
  const namespace = chooseNamespace(loaded, overrides, problems)
  const proxies = loaded.proxies.filter((item) => item.document.metadata.namespace === namespace)
  const [proxy, another] = proxies
  if (another !== undefined) {
    problems.push(
      another.problem([], `one process runs one ProxyConfig, and there is one at ${proxy?.file}:${proxy?.line}`),
    )
  }
  const spec = (proxy?.document ?? defaultSettings()).spec
  const file = proxy?.file ?? path.resolve('-')
  const secretsDirectory = directoryOf(overrides.secretsDirectory, proxy)
  const warnings: Problem[] = [...loaded.warnings]
  const drafts = draftRoutes({ loaded, overrides, namespace, proxy, secretsDirectory, problems, warnings })
  if (drafts.length === 0 && problems.length === 0) problems.push(nothingToServe(proxy, overrides))
  const address = overrides.listen ?? listenOf(loaded, namespace, proxy, drafts, problems)
  const callers = overrides.callers ?? defaultCallers(proxy)
  const connections = writtenConnections(
    proxy,
    loaded.workloads.filter(({ document }) => document.metadata.namespace === namespace),
    problems,
  )
  const allRoutes = resolveRoutes({
    drafts,
    loaded,
    namespace,
    callers,
    authServerName: spec.authServerRef?.name,
    connections: connections?.document.connections,
    // An invalid address is reported separately; routes draw no conclusions from it.
    isLocal: isLoopbackBind(address) || !listenSchema().safeParse(address).success,
    address,
    isSocket: address.startsWith('unix:'),
    inCluster: overrides.inCluster === true,
  })
  problems.push(...allRoutes.problems)
  const resolved = onlyRoute(allRoutes, overrides.onlyRoute)
  if (proxy !== undefined) {
    if (overrides.callers === undefined) problems.push(...sectionProblems(proxy))
    if (resolved.lacksCallers) problems.push(proxy.problem(['spec', 'auth'], NO_CALLERS))
    if (callers?.mode === 'anonymous' && spec.authServerRef !== undefined) {
      const message =
        'callers are anonymous by default, so no caller logs in there; expected "auth" of mode "oauth", or none'
      problems.push(proxy.problem(['spec', 'authServerRef'], message))
    }
  }
  const resolvedConnections = resolveConnections(connections, {
    routes: allRoutes.routes,
    authServers: allRoutes.authServers,
    isLocal: isLoopbackBind(address),
    isSocket: address.startsWith('unix:'),
    problems,
    warnings,
  })
  const adminAddress = overrides.admin ?? spec.admin.address
  const isShortForm = overrides.target !== undefined
  const inspector = inspectorOf(overrides.inspector, { proxy, isShortForm, adminAddress }, { problems, warnings })
  if (problems.length > 0) return { problems: unique(problems) }
  const unused = [...unusedCallers(loaded, overrides), ...unusedUpstreams(allRoutes.routes, loaded.auths)]
  const revision = proxy?.document.metadata.revision
  const allWarnings = unique([...warnings, ...unused, ...resolved.warnings])
  return {
    config: {
      namespace,
      ...(revision === undefined ? {} : { revision }),
      listen: listenSettings(spec, file, address),
      admin: {
        address: adminAddress,
        tokenFile: anchored(spec.admin, ['tokenFile'], file).tokenFile,
        inspector,
      },
      secretsDirectory,
      sessionKeySecretRef: spec.sessionKeySecretRef,
      routes: resolved.routes,
      authServers: resolved.authServers,
      connections: resolvedConnections,
      cache: spec.cache && { ...spec.cache, name: proxy?.document.metadata.name ?? '' },
      audit: auditOf(spec, file) ?? auditOfManifests(loaded, namespace),
      maxCredentials: spec.limits.cachedCredentials,
      warnings: allWarnings.map(renderProblem),
      places: new ConfigPlaces(
        placeTable({
          loaded,
          proxy,
          connections,
          drafts:
            resolved === allRoutes ? drafts : drafts.filter(({ settings }) => settings.name === overrides.onlyRoute),
          routes: resolved.routes,
          servers: resolved.authServers,
          callersFiles: overrides.callersFiles ?? [],
          callersSecrets: overrides.callersSecrets ?? [],
          options: overrides,
        }),
      ),
    },
    notes: [...resolved.notes, ...redirectUris(resolved.routes, address)],
    warnings: allWarnings,
  }
}

/** The configuration of one route; all routes if none has this name. */
function onlyRoute(all: ReturnType<typeof resolveRoutes>, name: string | undefined): typeof all {
  const routes = all.routes.filter((route) => route.name === name)
  if (routes.length === 0) return all
  const servers = new Set(routes.map(({ authServer }) => authServer?.server))
  return { ...all, routes, authServers: all.authServers.filter((server) => servers.has(server)) }
}

/** The audit trail, with its file beside the one that names it. */
const auditOf = ({ audit }: ProxyConfig['spec'], file: string): ResolvedProxy['audit'] =>
  audit && { ...audit, file: audit.file === STDOUT ? STDOUT : resolveBeside(file, audit.file) }

const ofManifests = once(() => auditSettings().parse({ file: STDOUT }))

/** What `audit.enabled` of a manifest means in ToolHive: events on standard output. */
const auditOfManifests = ({ workloads }: Loaded, namespace: string): ResolvedProxy['audit'] =>
  workloads.some(({ document }) => document.isAudited && document.metadata.namespace === namespace)
    ? ofManifests()
    : undefined

/** The listener settings; files are relative to the one that names them. */
function listenSettings({ listen }: ProxyConfig['spec'], file: string, address: string): ResolvedProxy['listen'] {
  const { tls } = listen
  return {
    address,
    tls: tls && { certFile: resolveBeside(file, tls.certFile), keyFile: resolveBeside(file, tls.keyFile) },
    allowedOrigins: listen.allowedOrigins,
    allowedHosts: listen.allowedHosts,
    headerLimitBytes: listen.headerLimit,
    connectionLimit: listen.connectionLimit,
    bufferedBodiesBytes: listen.bufferedBodiesLimit,
    trustedProxies: listen.trustedProxies,
  }
}

const nothingToServe = (proxy: Located<ProxyConfig> | undefined, { paths }: ProxyOverrides): Problem =>
  proxy?.problem(['spec', 'routes'], 'no routes to serve, expected at least one') ??
  fileProblem(
    paths?.[0] ?? '(files)',
    'no routes to serve, expected a ProxyConfig with routes, or a manifest of an MCPRemoteProxy, an MCPServerEntry or a VirtualMCPServer with discovered backends',
  )

/** The secrets directory: from the option, else from the ProxyConfig. */
export const secretsDirectoryOf = (loaded: Loaded, option: string | undefined): string =>
  directoryOf(option, loaded.proxies[0])

function directoryOf(option: string | undefined, proxy: Located<ProxyConfig> | undefined): string {
  if (option !== undefined) return path.resolve(option)
  const { secretsDirectory } = (proxy?.document ?? defaultSettings()).spec
  return resolveBeside(proxy?.file ?? path.resolve('-'), secretsDirectory)
}

/** `auth` sections that nothing uses: their author expects them to define the callers. */
function unusedCallers({ callers }: Loaded, overrides: ProxyOverrides): Problem[] {
  if (overrides.callers !== undefined) return []
  const message = 'this section is not used, expected --callers with its file, or "auth" in a ProxyConfig'
  return callers.map((section) => section.problem(['auth'], message, { at: 'key' }))
}

/** A missing section means mode `oauth` without providers (decisions §2.1). */
const NO_CALLERS = 'missing, so the mode is "oauth" and needs "oauth.resourceUrl" and "oauth.providers"'

/** Default callers of routes. Without a ProxyConfig they are anonymous. */
function defaultCallers(proxy: Located<ProxyConfig> | undefined): AuthSection | undefined {
  if (proxy === undefined) return { mode: 'anonymous' }
  const { auth } = proxy.document.spec
  return auth === undefined ? undefined : anchorAuthSection(auth, proxy.file)
}

function optionProblems({ listen, admin, target }: ProxyOverrides): Problem[] {
  const check = (option: string, value: string | undefined, schema: ReturnType<typeof listenAddress>): Problem[] => {
    const result = value === undefined ? undefined : schema.safeParse(value)
    return result?.error === undefined ? [] : [fileProblem(option, result.error.issues[0]?.message ?? 'not usable')]
  }
  return [
    ...check('--listen', listen, listenSchema()),
    ...check('--admin', admin, listenSchema()),
    ...check('--target', target, httpUrl()),
  ]
}

/** One process serves one namespace (decisions §6). */
function chooseNamespace(loaded: Loaded, overrides: ProxyOverrides, problems: Problem[]): string {
  if (overrides.namespace !== undefined) return overrides.namespace
  const used = new Map(loaded.declared.map((item) => [item.namespace, item]))
  const [first, second] = used.values()
  if (second !== undefined) {
    const names = [...used.keys()]
      .sort()
      .map((name) => `"${name}"`)
      .join(', ')
    problems.push(
      second.place.problem(
        ['metadata', 'namespace'],
        `one process serves one namespace, and these files have ${names}; expected --namespace`,
      ),
    )
  }
  return first?.namespace ?? DEFAULT_NAMESPACE
}

/** Provider URLs that this process would use but may not. */
function sectionProblems(proxy: Located<ProxyConfig>): Problem[] {
  const { auth, routes } = proxy.document.spec
  return [
    ...(auth === undefined ? [] : refusedHttp(auth, proxy, ['spec', 'auth'])),
    ...routes.flatMap((route, index) =>
      route.auth === undefined ? [] : refusedHttp(route.auth, proxy, ['spec', 'routes', index, 'auth']),
    ),
  ]
}

/** Removes duplicates, and sorts by file and line. */
function unique(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [renderProblem(problem), problem])).values()]
}
