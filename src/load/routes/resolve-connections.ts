import { FILE_PATHS, judgePlainHttp, markedContents, type Metadata, once, withValueAt } from '../../fields/index.ts'
import {
  connections as connectionsSchema,
  type Connections,
  connectionsOf,
  connectionUrls,
  hasSynthesizedIdentity,
  type ProxyConfig,
  type ResolvedAuthServer,
  type ResolvedConnections,
  type ResolvedRoute,
  upstreamsInOrder,
} from '../../resources/index.ts'
import type { Located, Problem } from '../documents/problem.ts'
import type { Workload } from '../workloads/workload.ts'
import { checkCalledUrl, refusedHttpMessage } from '../documents/warnings.ts'
import { resolveBeside } from './file-paths.ts'

export interface ConnectionInputs {
  readonly routes: readonly ResolvedRoute[]
  readonly authServers: readonly ResolvedAuthServer[]
  /** The bind is a loopback address or a Unix socket. */
  readonly isLocal: boolean
  /** It is a Unix socket, which has no URL for browsers. */
  readonly isSocket: boolean
  readonly problems: Problem[]
  readonly warnings: Problem[]
}

const schema = once(connectionsSchema)
const BASE = ['spec', 'connections'] as const

/** A `connections` section and the document that contains it. */
export type WrittenConnections = Located<{ readonly metadata: Metadata; readonly connections: Connections }>

/** The section of a process: of the ProxyConfig, else of a manifest. A second manifest with one is a problem. */
export function writtenConnections(
  proxy: Located<ProxyConfig> | undefined,
  manifests: readonly Located<Workload>[],
  problems: Problem[],
): WrittenConnections | undefined {
  const [own] = withConnections(proxy === undefined ? [] : [proxy], ({ spec }) => spec.connections)
  if (own !== undefined) return own
  const [first, second] = withConnections(manifests, ({ connections }) => connections)
  if (first !== undefined && second !== undefined) {
    const message = `one process has one "connections" section, and there is one at ${first.file}:${first.line}; expected it once, or in a ProxyConfig`
    problems.push(second.problem(BASE, message, { at: 'key' }))
  }
  return first
}

const withConnections = <T extends { readonly metadata: Metadata }>(
  documents: readonly Located<T>[],
  sectionOf: (document: T) => Connections | undefined,
): WrittenConnections[] =>
  documents.flatMap((place) => {
    const connections = sectionOf(place.document)
    return connections === undefined ? [] : [{ ...place, document: { metadata: place.document.metadata, connections } }]
  })

/** The connections of a process with absolute paths; what breaks a rule is added to `problems`. */
export function resolveConnections(
  written: WrittenConnections | undefined,
  inputs: ConnectionInputs,
): ResolvedConnections | undefined {
  if (written === undefined) return undefined
  const { connections: spec, metadata } = written.document
  const { problems, warnings, routes } = inputs
  const problem = (path: readonly PropertyKey[], message: string): Problem =>
    written.problem([...BASE, ...path], message)
  problems.push(
    ...bindProblems(spec, inputs, problem),
    ...nameProblems(spec, inputs, problem),
    ...loginProblems(spec, inputs, problem),
    ...urlProblems(spec, problem),
    ...targetProblems(spec, inputs, problem),
  )
  if (spec.storage === undefined)
    warnings.push(
      problem(
        ['storage'],
        'missing: connections are kept in memory and are lost at a restart; expected a store, or `type: memory` if that is wanted',
      ),
    )
  const used = new Set(routes.flatMap(connectionsOf))
  for (const [index, { name }] of spec.providers.entries())
    if (!used.has(name)) warnings.push(problem(['providers', index, 'name'], `no route uses the connection "${name}"`))
  const { name, namespace } = metadata
  const files = markedContents<string>(schema(), spec, FILE_PATHS)
  return {
    name: `${namespace}/${name}`,
    namespace,
    spec: files.reduce((whole, { path, value }) => withValueAt(whole, path, resolveBeside(written.file, value)), spec),
  }
}

type At = (path: readonly PropertyKey[], message: string) => Problem

function bindProblems(spec: Connections, { isLocal, isSocket }: ConnectionInputs, at: At): Problem[] {
  const { baseUrl, singleUser } = spec
  const found: Problem[] = []
  if (singleUser && !isLocal)
    found.push(
      at(
        ['singleUser'],
        'everyone who reaches this bind would use the same accounts, expected a loopback or unix: address',
      ),
    )
  if (baseUrl === undefined) {
    const why = isSocket ? 'a Unix socket' : isLocal ? undefined : 'not loopback'
    if (why !== undefined)
      found.push(at(['baseUrl'], `missing, expected the URL of the proxy for browsers, because the bind is ${why}`))
    return found
  }
  if (judgePlainHttp(baseUrl, false) === 'refuse')
    found.push(at(['baseUrl'], 'cookies and codes would be readable on the network, expected https'))
  if (new URL(baseUrl).search !== '' || baseUrl.endsWith('/'))
    found.push(at(['baseUrl'], 'expected a URL without query and trailing slash'))
  return found
}

/** Connections and upstream providers share one namespace: a config refers to both by name. */
function nameProblems({ providers }: Connections, { authServers }: ConnectionInputs, at: At): Problem[] {
  return providers.flatMap(({ name }, index) =>
    authServers
      .filter(({ spec }) => spec.upstreamProviders.some((one) => one.name === name))
      .map((server) =>
        at(
          ['providers', index, 'name'],
          `"${server.name}" has an upstream provider "${name}", expected different names`,
        ),
      ),
  )
}

/** Callers of a route with a connection need a way to prove who they are, and a login entry needs callers. */
function loginProblems(spec: Connections, { routes }: ConnectionInputs, at: At): Problem[] {
  const known = new Set(spec.login.map(({ issuerUrl }) => issuerUrl))
  const found: Problem[] = []
  const accepted = new Set(routes.flatMap(issuersOf))
  const embedded = new Set(routes.flatMap(({ authServer }) => authServer?.server.spec.issuer ?? []))
  for (const [index, { issuerUrl }] of spec.login.entries()) {
    if (judgePlainHttp(issuerUrl, false) !== 'fine')
      found.push(at(['login', index, 'issuerUrl'], 'codes and tokens would be readable on the network, expected https'))
    if (embedded.has(issuerUrl))
      found.push(
        at(
          ['login', index],
          `${issuerUrl} is an authorization server of this proxy, whose users need no entry; remove it`,
        ),
      )
    else if (!accepted.has(issuerUrl))
      found.push(
        at(['login', index, 'issuerUrl'], `no route accepts callers of ${issuerUrl}, expected the issuer of callers`),
      )
  }
  if (spec.singleUser) return found
  const lacking = new Map<string, string>()
  for (const route of routes) {
    if (connectionsOf(route).length === 0) continue
    for (const issuer of issuersOf(route)) if (!known.has(issuer)) lacking.set(issuer, route.name)
    const [first] = route.authServer === undefined ? [] : upstreamsInOrder(route.authServer.server.spec)
    if (first !== undefined && hasSynthesizedIdentity(first))
      found.push(
        at(
          [],
          `route "${route.name}" uses a connection, and users of "${route.authServer?.server.name}" can't prove who they are: its first upstream provider "${first.name}" does not identify them; expected "userInfo" or "identityFromToken" there`,
        ),
      )
  }
  for (const [issuer, route] of lacking)
    found.push(
      at(
        ['login'],
        `route "${route}" uses a connection, and callers of ${issuer} have no way to prove who they are; expected an entry with this "issuerUrl"`,
      ),
    )
  return found
}

const issuersOf = ({ callers }: ResolvedRoute): readonly string[] =>
  callers.mode === 'anonymous' ? [] : callers.oauth.providers.map(({ issuerUrl }) => issuerUrl)

/** The tokens of a provider of type `mcp` are for one MCP server. */
function targetProblems({ providers }: Connections, { routes }: ConnectionInputs, at: At): Problem[] {
  return providers.flatMap(({ name, type }, index) => {
    if (type !== 'mcp') return []
    const using = routes.filter((route) => connectionsOf(route).includes(name))
    const targets = new Set(using.map(({ target }) => `${target.origin}${target.path}`))
    if (targets.size < 2) return []
    return [
      at(
        ['providers', index, 'type'],
        `routes with different targets use the connection "${name}" (${[...targets].join(', ')}), expected one provider for each`,
      ),
    ]
  })
}

const urlProblems = (spec: Connections, at: At): Problem[] =>
  connectionUrls(spec)
    .filter((one) => checkCalledUrl(one) === 'refuse')
    .map((one) => at(one.path, refusedHttpMessage(one)))
