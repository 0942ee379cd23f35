import type { ProxyOverrides } from './proxy-overrides.ts'
import { routeOfManifest, routeOfOptions, routeOfProxy, type DraftRoute } from './draft-route.ts'
import { once, httpUrl } from '../../fields/index.ts'
import type { Loaded } from '../documents/loaded.ts'
import { fileProblem, type Located, type Problem } from '../documents/problem.ts'
import { proxyConfig, type ProxyConfig } from '../../resources/index.ts'
import type { Backend } from '../workloads/backends.ts'
import type { Workload } from '../workloads/workload.ts'
import { telemetryOfManifest } from './resolve-telemetry.ts'
import { authorizationOfManifest } from './resolve-tool-config.ts'
import { callersOfManifest, type CallersElsewhere } from './resolve-manifest-callers.ts'

const targetSchema = once(httpUrl)

/** The settings of a process without a ProxyConfig. */
export const defaultSettings = once((): ProxyConfig =>
  proxyConfig().parse({
    apiVersion: 'extauth.dev/v1alpha1',
    kind: 'ProxyConfig',
    metadata: { name: 'defaults' },
    spec: { auth: { mode: 'anonymous' } },
  }),
)

/** Inputs for drafting routes; problems are added to them. */
export interface DraftInputs {
  readonly loaded: Loaded
  readonly overrides: ProxyOverrides
  readonly namespace: string
  readonly proxy: Located<ProxyConfig> | undefined
  readonly secretsDirectory: string
  readonly problems: Problem[]
  readonly warnings: Problem[]
}

/** The routes of the files and options, in order. */
export function draftRoutes(inputs: DraftInputs): DraftRoute[] {
  const { loaded, overrides, namespace, proxy, secretsDirectory, problems } = inputs
  if (overrides.target !== undefined)
    return shortForm(loaded, overrides.target, overrides.externalAuth, namespace, problems)
  const manifests = loaded.workloads.filter(({ document }) => document.metadata.namespace === namespace)
  const routeNameOf = routeNames(manifests, proxy?.document.spec.routes ?? [])
  const isOnly = manifests.flatMap(({ document }) => document.backends).length === 1
  const elsewhere = callersElsewhere(overrides, proxy)
  const ofManifests = manifests.flatMap((manifest) => {
    for (const { path, details } of manifest.document.refused)
      problems.push(manifest.problem(path, details, { at: 'key' }))
    const callers = callersOfManifest(manifest, loaded, elsewhere, secretsDirectory, inputs)
    const telemetry = telemetryOfManifest(manifest.document, loaded, secretsDirectory)
    const authorization = authorizationOfManifest(manifest, loaded, problems)
    return manifest.document.backends.map((backend) =>
      routeOfManifest(
        manifest,
        { ...backend, name: routeNameOf(manifest.document, backend) },
        isOnly,
        callers,
        { telemetry, authorization },
        secretsDirectory,
      ),
    )
  })
  return [
    ...(proxy?.document.spec.routes.map((route, index) => routeOfProxy(proxy, route, index)) ?? []),
    ...ofManifests,
  ]
}

/**
 * The route name of a backend: set by the workload, else the name of the backend; `SERVER-BACKEND` if a backend of a
 * VirtualMCPServer would duplicate the name or path of another route.
 */
function routeNames(
  manifests: readonly Located<Workload>[],
  proxyRoutes: ProxyConfig['spec']['routes'],
): (workload: Workload, backend: Backend) => string {
  const uses = new Map<string, number>()
  const use = (name: string): void => void uses.set(name, (uses.get(name) ?? 0) + 1)
  for (const name of new Set(proxyRoutes.flatMap(({ name, path }) => [name, path.slice(1)]))) use(name)
  for (const { document } of manifests) for (const { name, routeName } of document.backends) use(routeName ?? name)
  return ({ kind, metadata }, { name, routeName }) =>
    routeName ?? (kind === 'VirtualMCPServer' && (uses.get(name) ?? 0) > 1 ? `${metadata.name}-${name}` : name)
}

function callersElsewhere(overrides: ProxyOverrides, proxy: Located<ProxyConfig> | undefined): CallersElsewhere {
  const { auth, authServerRef } = proxy?.document.spec ?? {}
  const saysWho = auth !== undefined || authServerRef !== undefined
  return {
    option: overrides.callers !== undefined,
    inCluster: overrides.inCluster === true,
    ignored: overrides.ignoreManifestCallers === true,
    proxy: saysWho ? `${proxy?.file}:${proxy?.line}` : undefined,
  }
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
    // Unreadable and invalid files have been reported already.
    if (here.length > 0 || loaded.problems.length === 0) problems.push(fileProblem('--external-auth', message))
    return []
  }
  if (!targetSchema().safeParse(target).success) return []
  return [
    routeOfOptions(target, auth.document.metadata.name, (message, options) => auth.problem(['spec'], message, options)),
  ]
}

/** The listen address without `--listen`: that of the ProxyConfig, else loopback with the port of the manifests. */
export function listenOf(
  loaded: Loaded,
  namespace: string,
  proxy: Located<ProxyConfig> | undefined,
  drafts: readonly DraftRoute[],
  problems: Problem[],
): string {
  if (proxy !== undefined) return proxy.document.spec.listen.address
  if (!drafts.some((draft) => draft.origin === 'manifest')) return defaultSettings().spec.listen.address
  const withPort = loaded.workloads.filter(
    ({ document }) =>
      document.metadata.namespace === namespace && document.backends.length > 0 && document.port !== undefined,
  )
  const ports = [...new Set(withPort.map(({ document }) => document.port))]
  const [port, another] = ports
  if (another !== undefined) {
    const second = withPort.find(({ document }) => document.port === another)
    if (second !== undefined)
      problems.push(
        second.problem(['spec', 'port'], `the manifests set different ports (${ports.join(', ')}), expected --listen`),
      )
  }
  return port === undefined ? defaultSettings().spec.listen.address : `127.0.0.1:${port}`
}
