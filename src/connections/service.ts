import {
  type AuthServerDeps,
  type AuthServerReadiness,
  checkAtStart,
  createBrowserEndpoints,
  createClientNetwork,
  createLimit,
  createPendingLogins,
  createUpstreamLegs,
  createUpstreamRegistrations,
  type PersonLogins,
  readinessOf,
} from '../authserver/index.ts'
import {
  ANONYMOUS,
  type Caller,
  type ConnectedAccounts,
  type ConnectLinks,
  Failure,
  type LocalHandler,
  Secret,
  type SecretHandle,
} from '../core/index.ts'
import { type Connections, upstreamOfConnection } from '../resources/index.ts'
import { createSealingSecrets } from '../signing/index.ts'
import { createSeal } from '../storage/index.ts'
import { createMcpUpstream, createUpstream } from '../upstreams/index.ts'
import { createAccounts } from './accounts.ts'
import { createApiKeys } from './api-keys.ts'
import { createConnectionAudit } from './audit.ts'
import { createClientDocuments, mcpUpstreamOf } from './client-documents.ts'
import { createFlow } from './flow.ts'
import { createManage } from './manage.ts'
import { type Owner, ownerOf } from './owner.ts'
import { failurePage } from './pages.ts'
import { createPersons, embeddedLogin, loginAt, matchIn, type PersonLogin } from './persons.ts'
import type { PendingRedirect } from './redirects.ts'
import { createTickets, type Match } from './tickets.ts'

/** The connections of one process, and the routes that use them. */
export interface ConnectionsConfig {
  /** `namespace/name` of the ProxyConfig. */
  readonly name: string
  readonly spec: Connections
  /** Default of `baseUrl`. */
  readonly listenUrl: string
  readonly routes: readonly {
    readonly name: string
    /** Host of the backend. */
    readonly host: string
    /** URL of the backend, which is the MCP server of a provider of type `mcp`. */
    readonly url: string
    readonly providers: readonly string[]
  }[]
}

/** The header of a route that carries a connection's credential. */
export interface ConnectionHeader {
  /** Lower case. */
  readonly name: string
  readonly prefix: string
}

/** Connections of one caller. */
export interface ConnectionFilter {
  readonly issuer: string
  /** `sub` of the caller's tokens. */
  readonly subject: string
  /** Default: all. */
  readonly provider?: string | undefined
}

/** Which stored connections to list. */
export interface ListFilter {
  readonly provider?: string | undefined
  /** The connections of one caller. */
  readonly caller?: { readonly issuer: string; readonly subject: string } | undefined
  /** The hash of a caller: the page after it. */
  readonly after?: string | undefined
}

/** Counts of stored connections, and one page of the callers who have them. Names no person and has no credential. */
export interface ConnectionList {
  readonly providers: Readonly<Record<string, { readonly connected: number; readonly broken: number }>>
  /** In the order of their keyed hashes. */
  readonly callers: readonly {
    readonly caller: string
    readonly connections: readonly { readonly provider: string; readonly state: 'connected' | 'broken' }[]
  }[]
  /** `after` of the next page; absent on the last one. */
  readonly next?: string
}

export interface ConnectionService {
  readonly accounts: ConnectedAccounts
  readonly handlers: readonly LocalHandler[]
  /** The links of a route; `headers` by provider, for `listing`. */
  links(headers: ReadonlyMap<string, ConnectionHeader>): ConnectLinks
  /** Ends the connections of a caller; all of them without `provider`. Returns their number. Throws `store_unavailable`. */
  disconnect(filter: ConnectionFilter): Promise<number>
  /** Throws `store_unavailable`. */
  list(filter: ListFilter): Promise<ConnectionList>
  readiness(): AuthServerReadiness
  /** Resolves after the first attempt to read the ended connections, even a failed one. */
  opened(): Promise<void>
  close(): Promise<void>
}

export interface ConnectionsDeps extends AuthServerDeps {
  /** Embedded authorization servers of callers; used only while they are open. */
  readonly embedded: readonly { readonly issuer: string; readonly persons: PersonLogins }[]
}

/** Callers of one page of a list. */
const LIST_PAGE = 1_000
/** Pages of one client address. */
const PAGE_RATE = { perSecond: 5, burst: 50 }

/** Opens the connections of a process; fetches nothing. Throws `config_error` for invalid settings and keys. */
export function openConnections(config: ConnectionsConfig, deps: ConnectionsDeps): ConnectionService {
  const { spec } = config
  const { clock, log, metrics, store, secrets } = deps
  const baseUrl = spec.baseUrl ?? config.listenUrl
  const handlesOf = (refs: Connections['keySecretRefs'] = []): readonly SecretHandle[] =>
    refs.map((ref) => secrets.handle(ref, 'bytes'))
  const sealing = createSealingSecrets(handlesOf(spec.keySecretRefs), () => deps.ephemeral.sealing(), log)
  checkAtStart(() => sealing.current())
  const seal = createSeal(sealing, clock)
  const registration = {
    kept: createUpstreamRegistrations(store, seal),
    redirectUris: () => [`${baseUrl}/connect/callback`],
  }
  const providers = new Map(spec.providers.map((provider) => [provider.name, provider]))
  const documents = createClientDocuments(baseUrl)
  const upstreams = new Map(
    spec.providers.flatMap((provider) => {
      const { name } = provider
      const upstream = upstreamOfConnection(provider)
      if (upstream !== undefined) return [[name, createUpstream(upstream, { ...deps, registration })] as const]
      const endpoint = config.routes.find(({ providers }) => providers.includes(name))?.url
      if (endpoint === undefined) return []
      const mcp = mcpUpstreamOf(provider, endpoint, documents)
      return mcp === undefined ? [] : [[name, createMcpUpstream(mcp, { ...deps, registration })] as const]
    }),
  )
  const keys = new Map(
    spec.providers
      .filter(({ type }) => type === 'secret')
      .map((provider) => [provider.name, createApiKeys(provider, deps)]),
  )
  const logins: readonly PersonLogin[] = [
    ...deps.embedded.map(({ issuer, persons: own }) => embeddedLogin(issuer, own)),
    ...spec.login.map((entry) => loginAt(entry, deps)),
  ]
  const listings = new Map(
    spec.providers.flatMap(({ name, listing }) =>
      listing === undefined ? [] : [[name, secrets.handle(listing.secretRef)] as const],
    ),
  )
  const clientNetwork = createClientNetwork()
  const audit = createConnectionAudit(deps.audit, clientNetwork)
  const accounts = createAccounts({
    providers: spec.providers,
    upstreams,
    keys,
    audit,
    isSingleUser: spec.singleUser,
    store,
    seal,
    clock,
    log,
    metrics,
  })
  const tickets = createTickets(store, seal, {
    clock,
    metrics,
    checkRoom: (owner, provider) => accounts.checkRoom(owner, provider),
  })
  const routesOf = (provider: string) => config.routes.filter(({ providers }) => providers.includes(provider))
  const label = (provider: string): string => providers.get(provider)?.displayName ?? provider
  const page = createBrowserEndpoints({
    clientNetwork,
    limit: createLimit(PAGE_RATE, clock),
    ownOrigins: [new URL(baseUrl).origin],
    log,
    failed: failurePage,
  })
  const pending = createPendingLogins(store, seal)
  const legs = createUpstreamLegs<PendingRedirect>('connect', pending, clock)
  const persons = createPersons(store, seal)
  const manage = createManage(
    {
      baseUrl,
      providers: [...providers.keys()],
      routeOf: (provider) => routesOf(provider)[0]?.name ?? '',
      logins,
      isSingleUser: spec.singleUser,
      label,
      accounts,
      tickets,
      persons,
      legs,
      seal,
      clock,
      log,
    },
    page,
  )
  const flow = createFlow(
    {
      baseUrl,
      providers,
      upstreams,
      keys,
      logins,
      isSingleUser: spec.singleUser,
      routesOf,
      label,
      tickets,
      accounts,
      persons,
      manage,
      pending,
      legs,
      audit,
      clock,
      log,
      metrics,
    },
    page,
  )

  /** The claims that the person must prove. Throws `config_error` for a token without them. */
  const matchOf = (caller: Caller): Match => {
    if (spec.singleUser || caller.kind === 'anonymous') return undefined
    const names = logins.find(({ issuer }) => issuer === caller.issuer)?.match
    if (names === undefined)
      throw new Failure('config_error', { detail: `connections.login has no entry for callers of ${caller.issuer}` })
    const match = matchIn(names, caller.claims)
    if (match !== undefined) return match
    throw new Failure('config_error', {
      detail: `the caller's token lacks one of ${names.join(', ')}, which connections.login.match requires`,
    })
  }
  const nameOf = (purpose: string): string => `text:${purpose}`
  const ownerOfCaller = ({ issuer, subject }: Pick<ConnectionFilter, 'issuer' | 'subject'>): Owner =>
    spec.singleUser ? ownerOf(ANONYMOUS, true) : { issuer, identity: `sub:${subject}` }
  const links: Omit<ConnectLinks, 'listing'> = {
    async link(caller, route, need) {
      const { text, ticket } = await tickets.issue(ownerOf(caller, spec.singleUser), matchOf(caller), route, need)
      return { url: `${baseUrl}/connect/${text}`, expiresAtMs: ticket.expiresAtMs, id: ticket.id }
    },
    label,
    isConnected: (caller, provider) => accounts.isConnected(caller, provider),
    onConnected: (caller, provider, listener) => accounts.onConnected(caller, provider, listener),
    seal: (purpose, text) => seal.seal(nameOf(purpose), Buffer.from(text)).toString('base64url'),
    async open(purpose, sealed) {
      if (!/^[A-Za-z0-9_-]+$/.test(sealed)) return undefined
      try {
        return (await seal.open(nameOf(purpose), Buffer.from(sealed, 'base64url')))?.plain.toString('utf8')
      } catch {
        // Sealed with a secret that is not configured any more, or by somebody else.
        return undefined
      }
    },
  }

  return {
    accounts,
    handlers: [...flow, ...manage.handlers, documents.handler],
    links: (headers) => ({
      ...links,
      listing(provider) {
        const header = headers.get(provider)
        const secret = listings.get(provider)
        if (header === undefined || secret === undefined) return undefined
        const value = new Secret(`${header.prefix}${secret.current().reveal()}`)
        return { kind: 'header', name: header.name, value }
      },
    }),
    async list({ provider, caller, after = '' }) {
      const only = caller && (await accounts.infos(ownerOfCaller(caller))).caller
      const found = (await accounts.list()).filter(
        (one) => (provider === undefined || one.provider === provider) && (only === undefined || one.caller === only),
      )
      const providers = new Map<string, { connected: number; broken: number }>()
      const callers = new Map<string, { provider: string; state: 'connected' | 'broken' }[]>()
      for (const { caller: hash, provider: name, state } of found) {
        const counted = providers.get(name) ?? { connected: 0, broken: 0 }
        counted[state] += 1
        providers.set(name, counted)
        if (hash <= after) continue
        const own = callers.get(hash) ?? []
        own.push({ provider: name, state })
        callers.set(hash, own)
      }
      const hashes = [...callers.keys()].sort()
      const page = hashes.slice(0, LIST_PAGE)
      const last = page.at(-1)
      return {
        providers: Object.fromEntries([...providers].sort(([one], [other]) => (one < other ? -1 : 1))),
        callers: page.map((hash) => ({ caller: hash, connections: callers.get(hash) ?? [] })),
        ...(hashes.length > page.length && last !== undefined ? { next: last } : {}),
      }
    },
    async disconnect({ issuer, subject, provider }) {
      const owner = ownerOfCaller({ issuer, subject })
      const names =
        provider === undefined ? (await accounts.infos(owner)).connections.map((one) => one.provider) : [provider]
      const ended = await Promise.all(names.map((name) => accounts.disconnect(owner, name, { by: 'operator' })))
      return ended.filter(Boolean).length
    },
    readiness: () =>
      readinessOf(
        [() => sealing.current(), () => accounts.check(), ...[...listings.values()].map((one) => () => one.current())],
        store,
      ),
    opened: () => accounts.opened(),
    async close() {
      await accounts.close()
      await Promise.all([
        ...[...upstreams.values()].map((upstream) => upstream.close()),
        ...[...keys.values()].map((one) => one.close()),
        ...logins.map((login) => login.close()),
      ])
    },
  }
}
