import {
  LAB_AUDIENCE,
  type LabBackend,
  type LabIdentityProvider,
  startLabBackend,
  startLabIdentityProvider,
} from '../../../lab/index.ts'
import { Secret } from '../../../src/core/index.ts'
import { APPLICATION } from '../redis/deployment.ts'
import { exchangeConfig, statusAt } from './credentials.ts'
import { openOtherGrants, OTHER_GRANTS, tokenFor } from './grants.ts'
import { configFolder, proxyConfig, run, type RunningTestProxy } from './run.ts'

/** Configuration shared by all replicas. */
export interface Fleet {
  readonly identity: LabIdentityProvider
  readonly backend: LabBackend
  readonly replicas: readonly RunningTestProxy[]
  /** The files of one replica, to start another. */
  readonly files: Readonly<Record<string, string>>
  /** Headers of a caller of this route. Default: the one that exchanges. */
  bearer(subject: string, route?: string): Promise<Record<string, string>>
  /** Sends a request to a replica; returns its status and duration in milliseconds. */
  call(url: string, headers: Record<string, string>, route?: string): Promise<{ status: number; tookMs: number }>
  /** How often a token was exchanged so far. */
  exchanges(): number
  /** How often anything was fetched so far. */
  fetches(): number
  admin(replica: RunningTestProxy, path: string, method?: string): Promise<Record<string, unknown>>
  metric(replica: RunningTestProxy, line: RegExp): Promise<number>
  /** How often the replicas, all together, came to a credential this way. */
  outcomes(outcome: 'alone' | 'made'): Promise<number>
  /** Exchanges so far beyond those that a replica made because Redis was too slow for it, each perhaps for another caller. */
  sharedExchanges(): Promise<number>
  close(): Promise<void>
}

export const SEALING = 'a-sealing-secret-of-32-bytes-or-more'

/** Starts so many real proxies with one configuration before the lab's identity provider and backend. */
export async function openFleet(
  size: number,
  sentinels: readonly { readonly port: number }[],
  extra: object = {},
  kvstore: object = {},
): Promise<Fleet> {
  const clock = { now: () => Date.now() }
  const secret = 'a-secret-of-the-proxy'
  const others = await openOtherGrants(clock)
  const exchanging = { id: 'one', secret: new Secret(secret), may: ['exchange'], audiences: ['one'] } as const
  const identity = await startLabIdentityProvider({ port: 0, clock, clients: [exchanging, ...others.clients] })
  const { url: issuer, jwks: keys, isRevoked } = identity
  const other = await others.for(identity)
  const mounts = { '/one': { kind: 'jwt', issuer, audience: 'one', keys, isRevoked }, ...other.mounts } as const
  const backend = await startLabBackend({ port: 0, clock, keep: 10_000, mounts })
  const storage = {
    type: 'kvstore',
    kvstore: {
      aclUserConfig: {
        usernameSecretRef: { name: 'redis', key: 'username' },
        passwordSecretRef: { name: 'redis', key: 'password' },
      },
      sentinelConfig: { masterName: 'mymaster', sentinelAddrs: sentinels.map(({ port }) => `127.0.0.1:${port}`) },
      ...kvstore,
    },
  }
  const files = {
    'one.json': exchangeConfig('one', `${issuer}/token`),
    'proxy.json': proxyConfig({
      auth: {
        mode: 'oauth',
        oauth: {
          resourceUrl: 'http://127.0.0.1/',
          providers: [{ name: 'lab', issuerUrl: issuer, audience: LAB_AUDIENCE }],
        },
      },
      cache: { storage, keySecretRefs: [{ name: 'cache', key: 'seal' }] },
      routes: ['one', ...OTHER_GRANTS].map((name) => ({
        name,
        path: `/${name}`,
        target: `${backend.url}/${name}/mcp`,
        externalAuthConfigRef: { name },
      })),
      ...extra,
    }),
    ...other.files,
    'secrets/one/secret': secret,
    'secrets/redis/username': APPLICATION.username,
    'secrets/redis/password': APPLICATION.password,
    'secrets/cache/seal': SEALING,
  }
  const replicas = await Promise.all(Array.from({ length: size }, () => run(files)))
  const metric: Fleet['metric'] = async (replica, line) => {
    const text = await (await fetch(`${replica.adminUrl}/metrics`)).text()
    return Number(new RegExp(`^${line.source} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
  }
  const outcomes: Fleet['outcomes'] = async (outcome) => {
    const line = new RegExp(`extauth_shared_credentials_total{outcome="${outcome}"}`)
    const counts = await Promise.all(replicas.map((one) => metric(one, line)))
    return counts.reduce((sum, one) => sum + one, 0)
  }
  return {
    identity,
    backend,
    replicas,
    files,
    bearer: async (sub, route = 'one') => ({
      authorization: `Bearer ${await identity.mint({ ttlSeconds: 3_600, sub, ...tokenFor(route) })}`,
    }),
    async call(url, headers, route = 'one') {
      const startedAt = performance.now()
      const status = await statusAt(`${url}/${route}`, headers)
      return { status, tookMs: performance.now() - startedAt }
    },
    exchanges: () => identity.calls('exchange'),
    fetches: () => identity.calls('exchange') + identity.calls('token') + identity.calls('obo') + others.given(),
    async admin(replica, path, method = 'GET') {
      const response = await fetch(`${replica.adminUrl}${path}`, { method })
      return (await response.json()) as Record<string, unknown>
    },
    metric,
    outcomes,
    sharedExchanges: async () => identity.calls('exchange') - (await outcomes('alone')),
    async close() {
      await Promise.all(replicas.map((replica) => replica.close()))
      await Promise.all([backend.close(), identity.close(), others.close()])
    },
  }
}

/** The files of a replica in a folder, for a process of its own. */
export const fleetFolder = (fleet: Fleet) => configFolder(fleet.files)
