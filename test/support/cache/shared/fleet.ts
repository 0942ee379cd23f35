import {
  createCredentialCache,
  createSharedCredentials,
  hashKey,
  type CacheSlot,
  type CredentialCache,
  type PurgeFilter,
  type SharedCredentials,
  type SharedSeal,
  type SharedStore,
} from '../../../../src/cache/index.ts'
import { Secret, type Credential, type Failure } from '../../../../src/core/index.ts'
import { storedCredential } from '../../../../src/obtain/index.ts'
import { createSeal, createSealingKeys, troubleOf } from '../../../../src/storage/index.ts'
import {
  createManualClock,
  createRecordingLog,
  createRecordingMetrics,
  createTestSecrets,
  type ManualClock,
} from '../../ports.ts'

export const LIFETIME_MS = 3_600_000

/** The identity provider of a fleet: says how often it was called for whom. */
export interface Provider {
  readonly calls: string[]
  /** Delay and failure of calls that begin from now on. */
  gate: Promise<unknown>
  failure: Failure | undefined
  /** When the calls have to have ended, by `performance.now()`. */
  readonly ends: number[]
}

export interface FleetReplica {
  readonly cache: CredentialCache<Credential>
  readonly shared: SharedCredentials<Credential>
  readonly metrics: ReturnType<typeof createRecordingMetrics>
  readonly log: ReturnType<typeof createRecordingLog>
  readonly rotations: (string | undefined)[]
  /** Asks for the credential of a caller. */
  get(subject: string): Promise<string>
  /** The backend refuses what this caller was given. */
  refuse(subject: string): Promise<void>
  /** The value of a counter of shared credentials. */
  count(outcome: string): number
}

export interface FleetOptions {
  readonly clock?: ManualClock
  readonly provider?: Provider
  /** Default: enough for a busy machine, so that only what is meant to be slow is. */
  readonly budgetMs?: number
  readonly seal?: SharedSeal
  /** Of one request. Default 10 s. */
  readonly deadlineMs?: number
}

export const createProvider = (): Provider => ({ calls: [], gate: Promise.resolve(), failure: undefined, ends: [] })

export const SEALING = 'a-sealing-secret-with-32-bytes-at-least'

export function createTestSeal(clock: ManualClock, ...values: string[]): SharedSeal {
  const secrets = createTestSecrets(Object.fromEntries(values.map((value, index) => [`seal/${index}`, value])))
  return createSeal(createSealingKeys(values.map((_, index) => secrets.get(`seal/${index}`))), clock)
}

/** The same key in every replica, whatever its number. */
export const keyOf = (subject: string): string => hashKey(['ns/github', 'https://id.example.com', subject])

/** A replica on a store: its own cache, metrics and log; the provider and the clock are shared. */
export function createFleetReplica(store: SharedStore, options: FleetOptions = {}): FleetReplica {
  const clock = options.clock ?? createManualClock()
  const provider = options.provider ?? createProvider()
  const metrics = createRecordingMetrics()
  const log = createRecordingLog()
  const rotations: (string | undefined)[] = []
  const ports = { clock, metrics, random: () => 0.5 }
  const cache = createCredentialCache<Credential>({ ...ports, maxEntries: 10_000, shared: () => shared })
  const shared = createSharedCredentials<Credential>({
    ...ports,
    log,
    store,
    seal: options.seal ?? createTestSeal(clock, SEALING),
    codec: storedCredential,
    budgetMs: options.budgetMs ?? 10_000,
    troubleOf,
    onPurge: (filter: PurgeFilter) => void cache.purgeHere(filter),
    onRotation: (config) => rotations.push(config),
  })
  const scope = cache.scope('ns/github', 'tokenExchange')

  const slotOf = (subject: string): CacheSlot<Credential> => ({
    key: keyOf(subject),
    scope,
    generation: { configHash: 'hash', secrets: 'secrets' },
    issuer: 'https://id.example.com',
    subject,
    ownerId: subject,
    role: undefined,
    notAfterMs: undefined,
    deadlineMs: options.deadlineMs ?? 10_000,
    async fetch(endsAtMs) {
      provider.calls.push(subject)
      provider.ends.push(endsAtMs)
      const number = provider.calls.length
      const { failure, gate } = provider
      await gate
      if (failure !== undefined) throw failure
      const value = new Secret(`Bearer token-${number}-of-${subject}`)
      return { value: { kind: 'header', name: 'authorization', value }, expiresAtMs: clock.now() + LIFETIME_MS }
    },
  })
  const textOf = (credential: Credential) => (credential.kind === 'header' ? credential.value.reveal() : '')

  return {
    cache,
    shared,
    metrics,
    log,
    rotations,
    get: async (subject) => textOf(await cache.get(slotOf(subject))),
    async refuse(subject) {
      const slot = slotOf(subject)
      cache.reject(slot, await cache.get(slot))
    },
    count: (outcome) => metrics.value('extauth_shared_credentials_total', outcome),
  }
}

/** Lets everything run that doesn't wait for real time. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
