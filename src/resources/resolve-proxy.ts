import path from 'node:path'
import type { AuthSection } from './auth-section.ts'
import { routeOfManifest, routeOfOptions, routeOfProxy, type DraftRoute } from './draft-route.ts'
import { anchorAuthSection, anchored, besides } from './file-paths.ts'
import type { Loaded } from './loaded.ts'
import { DEFAULT_NAMESPACE } from './metadata.ts'
import { isLoopbackBind } from './plain-http.ts'
import { fileProblem, renderProblem, type Located, type Problem } from './problem.ts'
import { listenAddress, proxyConfig, type ProxyConfig } from './proxy-config.ts'
import { resolveRoutes } from './resolve-routes.ts'
import type { ResolvedProxy } from './resolved.ts'
import { httpUrl } from './scalars.ts'
import { refusedHttp } from './warnings.ts'

/** What the command line says beside the files; all optional. */
export interface ProxyOverrides {
  /** `--listen`; beats the files. */
  readonly listen?: string | undefined
  /** `--admin`. */
  readonly admin?: string | undefined
  /** `--secrets-dir`, relative to the working directory. */
  readonly secretsDirectory?: string | undefined
  /** `--namespace`: documents of others are left alone. */
  readonly namespace?: string | undefined
  /** The section of `--callers FILE` (`loadCallersFile`); beats `spec.auth` of ProxyConfig. */
  readonly callers?: AuthSection | undefined
  /** `--target`, the short form: one route instead of those in the files. */
  readonly target?: string | undefined
  /** The name after `#` of `--external-auth FILE#name`; the only config of the file when absent. */
  readonly externalAuth?: string | undefined
}

export type ProxyResult =
  | { readonly config: ResolvedProxy; readonly problems?: undefined }
  | { readonly problems: readonly Problem[]; readonly config?: undefined }

/**
 * What a proxy process would run for these files: all references followed, all rules between documents, bind and
 * callers applied (decisions §2.1, §7). Otherwise every problem, those of loading included; the reason of a problem is
 * `type_not_runnable` where a route uses what this version only loads.
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
  const drafts = draftRoutes(loaded, overrides, namespace, proxy, problems)
  if (drafts.length === 0 && problems.length === 0) {
    problems.push(
      proxy?.problem(['spec', 'routes'], 'there is nothing to serve, expected a route') ??
        fileProblem(
          '(files)',
          'there is nothing to serve, expected a ProxyConfig with routes, or a MCPRemoteProxy or MCPServerEntry manifest',
        ),
    )
  }
  const spec = (proxy?.document ?? DEFAULTS).spec
  const address = overrides.listen ?? listenOf(loaded, namespace, proxy, drafts, problems)
  const resolved = resolveRoutes({
    drafts,
    loaded,
    namespace,
    callers: overrides.callers ?? defaultCallers(proxy),
    // An address that is none is a problem of its own, from which nothing follows for the routes.
    isLocal: isLoopbackBind(address) || !listenAddress().safeParse(address).success,
    isSocket: address.startsWith('unix:'),
  })
  problems.push(...resolved.problems)
  if (proxy !== undefined && overrides.callers === undefined) problems.push(...sectionProblems(proxy))
  if (problems.length > 0) return { problems: unique(problems) }
  const file = proxy?.file ?? path.resolve('-')
  return {
    config: {
      namespace,
      listen: {
        address,
        tls:
          spec.listen.tls === undefined
            ? undefined
            : { certFile: besides(file, spec.listen.tls.certFile), keyFile: besides(file, spec.listen.tls.keyFile) },
        allowedOrigins: spec.listen.allowedOrigins,
        allowedHosts: spec.listen.allowedHosts,
        headerLimitBytes: spec.listen.headerLimit,
      },
      admin: {
        address: overrides.admin ?? spec.admin.address,
        tokenFile: anchored(spec.admin, ['tokenFile'], file).tokenFile,
      },
      secretsDirectory:
        overrides.secretsDirectory === undefined
          ? besides(file, spec.secretsDirectory)
          : path.resolve(overrides.secretsDirectory),
      sessionKeySecretRef: spec.sessionKeySecretRef,
      routes: resolved.routes,
      warnings: unique([...loaded.warnings, ...resolved.warnings]).map(renderProblem),
    },
  }
}

/** The settings of a process without a ProxyConfig. */
const DEFAULTS: ProxyConfig = proxyConfig().parse({
  apiVersion: 'extauth.dev/v1alpha1',
  kind: 'ProxyConfig',
  metadata: { name: 'defaults' },
  spec: { auth: { mode: 'anonymous' } },
})

/** Callers of routes that don't say otherwise. Without a ProxyConfig nobody says who calls: they are anonymous. */
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
    ...check('--listen', listen, listenAddress()),
    ...check('--admin', admin, listenAddress()),
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

function draftRoutes(
  loaded: Loaded,
  overrides: ProxyOverrides,
  namespace: string,
  proxy: Located<ProxyConfig> | undefined,
  problems: Problem[],
): DraftRoute[] {
  if (overrides.target !== undefined)
    return shortForm(loaded, overrides.target, overrides.externalAuth, namespace, problems)
  const manifests = loaded.workloads.flatMap((workload) => {
    const { remote, metadata } = workload.document
    return remote === undefined || metadata.namespace !== namespace ? [] : [{ workload, url: remote.url }]
  })
  return [
    ...(proxy?.document.spec.routes.map((route, index) => routeOfProxy(proxy, route, index)) ?? []),
    ...manifests.map(({ workload, url }) => routeOfManifest(workload, url, manifests.length === 1)),
  ]
}

function shortForm(
  loaded: Loaded,
  target: string,
  wanted: string | undefined,
  namespace: string,
  problems: Problem[],
): DraftRoute[] {
  const here = loaded.auths.filter((auth) => auth.document.metadata.namespace === namespace)
  const named = wanted === undefined ? here : here.filter((auth) => auth.document.metadata.name === wanted)
  const [auth, another] = named
  if (auth === undefined || another !== undefined) {
    const names = here.map((item) => item.document.metadata.name).join(', ')
    const message =
      here.length === 0 ? 'the file has no MCPExternalAuthConfig' : `expected FILE#name with one of ${names}`
    // A file that could not be read, or not as it is meant, has been told about.
    if (here.length > 0 || loaded.problems.length === 0) problems.push(fileProblem('--external-auth', message))
    return []
  }
  if (!httpUrl().safeParse(target).success) return []
  return [
    routeOfOptions(target, auth.document.metadata.name, (message, options) => auth.problem(['spec'], message, options)),
  ]
}

/** `--listen` is not given: the ProxyConfig's address, else loopback with the one port that the manifests name. */
function listenOf(
  loaded: Loaded,
  namespace: string,
  proxy: Located<ProxyConfig> | undefined,
  drafts: readonly DraftRoute[],
  problems: Problem[],
): string {
  if (proxy !== undefined) return proxy.document.spec.listen.address
  if (!drafts.some((draft) => draft.origin === 'manifest')) return DEFAULTS.spec.listen.address
  const withPort = loaded.workloads.filter(
    ({ document }) =>
      document.metadata.namespace === namespace && document.remote !== undefined && document.port !== undefined,
  )
  const ports = [...new Set(withPort.map(({ document }) => document.port))]
  const [port, another] = ports
  if (another !== undefined) {
    const second = withPort.find(({ document }) => document.port === another)
    if (second !== undefined)
      problems.push(
        second.problem(['spec', 'port'], `the manifests name several ports (${ports.join(', ')}), expected --listen`),
      )
  }
  return port === undefined ? DEFAULTS.spec.listen.address : `127.0.0.1:${port}`
}

/** Provider URLs that this process would use and may not. */
function sectionProblems(proxy: Located<ProxyConfig>): Problem[] {
  const { auth, routes } = proxy.document.spec
  return [
    ...(auth === undefined ? [] : refusedHttp(auth, proxy, ['spec', 'auth'])),
    ...routes.flatMap((route, index) =>
      route.auth === undefined ? [] : refusedHttp(route.auth, proxy, ['spec', 'routes', index, 'auth']),
    ),
  ]
}

/** Each problem once, in the order of files and lines. */
function unique(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [renderProblem(problem), problem])).values()]
}
