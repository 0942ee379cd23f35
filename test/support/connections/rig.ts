import { openConnections, type ConnectionService } from '../../../src/connections/index.ts'
import { type AuthenticatedCaller, type ConnectionNeed, NO_AUDIT } from '../../../src/core/index.ts'
import { once } from '../../../src/fields/index.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { connections } from '../../../src/resources/index.ts'
import { createEphemeralKeys } from '../../../src/signing/index.ts'
import { createMemoryStore, type Store } from '../../../src/storage/index.ts'
import { backFrom } from '../authserver/rig.ts'
import type { Browser, Seen } from '../authserver/browser.ts'
import { createCaller, createTestSecrets } from '../ports.ts'
import { runtimeOf, startProxy } from '../proxy/harness.ts'
import type { Sockets } from '../sockets.ts'
import { TLS } from '../tls.ts'
import { type Idp, startIdp, SUBJECT } from '../upstreams/idp.ts'
import { NO_FILES } from '../upstreams/rig.ts'

const schema = once(connections)

export const SEALING_SECRET = 'a sealing secret of more than thirty-two bytes'

export interface RigOptions {
  /** Put over the spec; gets the issuer of the callers and the service. */
  readonly spec?: (idps: { readonly people: Idp; readonly service: Idp }) => Readonly<Record<string, unknown>>
  readonly store?: (store: Store) => Store
  readonly secrets?: Readonly<Record<string, string>>
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
    ...options.secrets,
  })
  const memory = createMemoryStore({ clock, log })
  const store = options.store?.(memory) ?? memory
  const spec = schema().parse({
    baseUrl: url,
    keySecretRefs: [{ name: 'keys', key: 'seal' }],
    login: [{ ...client(people), ...CA }],
    providers: [{ name: 'github', type: 'oidc', ...CA, oidcConfig: client(service, { scopes: ['openid', 'repo'] }) }],
    ...options.spec?.({ people, service }),
  })
  const deps = {
    clock,
    log,
    metrics,
    secrets,
    store,
    ephemeral: createEphemeralKeys(),
    audit: NO_AUDIT,
    ...NO_FILES,
    outbound: (wanted: Parameters<Parameters<typeof openConnections>[1]['outbound']>[0]) =>
      createOutbound({ ...wanted, clock, breaker: false, retry: false }),
  }
  const routes = [
    {
      name: 'code',
      host: 'code.example.com',
      url: 'https://code.example.com/mcp',
      providers: spec.providers.map(({ name }) => name),
    },
  ]
  const config = { name: 'default/proxy', spec, listenUrl: url, routes }
  /** One more replica over the same store. */
  const replica = (): ConnectionService => sockets.closing(openConnections(config, deps))
  /** Lets the listener serve this replica. */
  const serve = (one: ConnectionService): void =>
    proxy.swap({ ...runtimeOf([]), localHandlers: one.handlers, close: () => Promise.resolve() })
  const main = replica()
  serve(main)
  await main.opened()
  const links = main.links(new Map([['github', { name: 'authorization', prefix: 'Bearer ' }]]))
  return { people, service, url, clock, log, metrics, store: memory, main, links, replica, serve, spec }
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
