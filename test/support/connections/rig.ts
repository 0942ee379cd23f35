import { openAuthServer } from '../../../src/authserver/index.ts'
import { openConnections, type ConnectionService } from '../../../src/connections/index.ts'
import type { AuditNotice, AuthenticatedCaller, ConnectionNeed, Route } from '../../../src/core/index.ts'
import { once } from '../../../src/fields/index.ts'
import { createOutbound, type OutboundOptions } from '../../../src/net/index.ts'
import { embeddedAuthServer } from '../../../src/resources/embedded-auth-server.ts'
import { type Connections, connections } from '../../../src/resources/index.ts'
import { createEphemeralKeys } from '../../../src/signing/index.ts'
import { createMemoryStore, type Store } from '../../../src/storage/index.ts'
import { backFrom, getTokens, HMAC, LIMITS, register, upstreamOf } from '../authserver/rig.ts'
import type { Browser, Seen } from '../authserver/browser.ts'
import { subjectOf } from '../../../src/authserver/tokens/subject.ts'
import { createCaller, createTestSecrets } from '../ports.ts'
import { runtimeOf, startProxy } from '../proxy/harness.ts'
import type { Sockets } from '../sockets.ts'
import { TLS } from '../tls.ts'
import { type Idp, startIdp, SUBJECT } from '../upstreams/idp.ts'
import { NO_FILES } from '../upstreams/rig.ts'

const schema = once(connections)
const serverSchema = once(embeddedAuthServer)

export const SEALING_SECRET = 'a sealing secret of more than thirty-two bytes'

export interface RigOptions {
  /** Put over the spec; gets the issuer of the callers and the service. */
  readonly spec?: (idps: { readonly people: Idp; readonly service: Idp }) => Readonly<Record<string, unknown>>
  readonly store?: (store: Store) => Store
  /** A store for each replica. Default: one for all. */
  readonly storeOfReplica?: () => Store
  readonly secrets?: Readonly<Record<string, string>>
  /** Callers log in at an embedded server, whose users `people` identifies. */
  readonly embedded?: boolean
  /** URL of the backend of the route. */
  readonly backend?: string
  /** Put over the options of every outbound connection. */
  readonly outbound?: Partial<OutboundOptions>
}

export const client = (idp: Idp, more: Readonly<Record<string, unknown>> = {}) => ({
  issuerUrl: idp.url,
  clientId: 'us',
  clientSecretRef: { name: 'idp', key: 'secret' },
  ...more,
})
const CA = { caBundleRef: { name: 'idp', key: 'ca' } }

/** Connections on the real listener: `people` is the issuer of the callers, `service` the provider of accounts. */
export async function startRig(sockets: Sockets, options: RigOptions = {}) {
  const [people, service] = [await startIdp(sockets), await startIdp(sockets)]
  const proxy = await startProxy(sockets, runtimeOf([]))
  const { clock, log, metrics, url } = proxy
  const secrets = createTestSecrets({
    'idp/secret': 'of us',
    'idp/ca': TLS.ca.toString(),
    'keys/seal': SEALING_SECRET,
    'as/hmac': HMAC,
    ...options.secrets,
  })
  const memory = createMemoryStore({ clock, log })
  const store = options.store?.(memory) ?? memory
  const spec = schema().parse({
    baseUrl: url,
    keySecretRefs: [{ name: 'keys', key: 'seal' }],
    login: options.embedded === true ? [] : [{ ...client(people), ...CA }],
    providers: [{ name: 'github', type: 'oidc', ...CA, oidcConfig: client(service, { scopes: ['openid', 'repo'] }) }],
    ...options.spec?.({ people, service }),
  })
  const notices: AuditNotice[] = []
  const deps = {
    clock,
    log,
    metrics,
    secrets,
    store,
    ephemeral: createEphemeralKeys(),
    audit: { notice: (notice: AuditNotice) => void notices.push(notice) },
    ...NO_FILES,
    outbound: (wanted: Parameters<Parameters<typeof openConnections>[1]['outbound']>[0]) =>
      createOutbound({ ...wanted, clock, breaker: false, retry: false, ...options.outbound }),
  }
  const server =
    options.embedded === true
      ? sockets.closing(
          openAuthServer(
            {
              name: 'default/as',
              spec: serverSchema().parse({
                issuer: url,
                upstreamProviders: [upstreamOf(people)],
                hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
                limits: LIMITS,
              }),
              resources: [{ url: `${url}/mcp`, scopes: [], providers: [] }],
              remembersPersons: true,
            },
            { ...deps, store: createMemoryStore({ clock, log }) },
          ),
        )
      : undefined
  const embedded = server === undefined ? [] : [{ issuer: url, persons: server.persons }]
  const routes = [
    {
      name: 'code',
      host: 'code.example.com',
      url: options.backend ?? 'https://code.example.com/mcp',
      providers: spec.providers.map(({ name }) => name),
    },
  ]
  const config = { name: 'default/proxy', spec, listenUrl: url, routes }
  /** One more replica over the same store; `more` is put over its spec. */
  const replica = (more: Partial<Connections> = {}): ConnectionService =>
    sockets.closing(
      openConnections(
        { ...config, spec: { ...spec, ...more } },
        {
          ...deps,
          store: options.storeOfReplica?.() ?? store,
          embedded,
        },
      ),
    )
  /** Lets the listener serve this replica, and these routes. */
  const serve = (one: ConnectionService, served: readonly Route[] = []): void =>
    proxy.swap({
      routes: served,
      localHandlers: [...one.handlers, ...(server?.handlers ?? [])],
      close: () => Promise.resolve(),
    })
  const main = replica()
  serve(main)
  await main.opened()
  const links = main.links(new Map([['github', { name: 'authorization', prefix: 'Bearer ' }]]))
  return {
    people,
    service,
    url,
    clock,
    log,
    metrics,
    notices,
    store: memory,
    main,
    links,
    replica,
    serve,
    spec,
    server,
  }
}

export type ConnectionRig = Awaited<ReturnType<typeof startRig>>

export const MISSING: ConnectionNeed = { provider: 'github', problem: 'missing' }

/** A caller of the issuer `people`; by default the person who logs in there. */
export const callerOf = ({ people }: Pick<ConnectionRig, 'people'>, sub = SUBJECT): AuthenticatedCaller =>
  createCaller({ issuer: people.url, subject: sub, claims: { sub } })

/** Logs in as `sub` at the issuer of the callers. */
export function asPerson(rig: ConnectionRig, browser: Browser, sent: Seen, sub = SUBJECT): Promise<Seen> {
  rig.people.claims = { ...rig.people.claims, sub }
  rig.people.user = { ...rig.people.user, sub }
  return browser.get(backFrom({ idp: rig.people, clock: rig.clock }, sent))
}

/** The person logs in at the embedded server with a client. */
export async function logInWithClient(rig: ConnectionRig, browser: Browser, sub = SUBJECT) {
  if (rig.server === undefined) throw new Error('there is no embedded server')
  const { server, url, people, clock } = rig
  const at = { issuer: url, server, resources: [{ url: `${url}/mcp` }], idp: people, clock }
  const testClient = await register(at)
  people.claims = { ...people.claims, sub }
  const tokens = await getTokens(at, testClient, { browser, more: { scope: undefined } })
  return { client: testClient, tokens }
}

/** A caller with a token of the embedded server. */
export function embeddedCaller({ people, url }: ConnectionRig, sub = SUBJECT): AuthenticatedCaller {
  const subject = subjectOf(people.url, sub)
  return createCaller({ issuer: url, subject, claims: { sub: subject } })
}

/** Logs in at the service; `more` replaces parameters of the response. */
export const atService = (
  rig: ConnectionRig,
  browser: Browser,
  sent: Seen,
  more: Readonly<Record<string, string>> = {},
): Promise<Seen> => browser.get(backFrom({ idp: rig.service, clock: rig.clock }, sent, more))

/** From the link to the completion page. */
export async function connect(rig: ConnectionRig, browser: Browser, link: string, sub = SUBJECT): Promise<Seen> {
  const consent = await asPerson(rig, browser, await browser.get(link), sub)
  return atService(rig, browser, await browser.press(consent, 'continue'))
}
