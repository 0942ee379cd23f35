/**
 * What it costs that replicas share their credentials (`ProxyConfig.spec.cache`):
 *
 *   node bench/micro/shared-cache.ts
 *
 * Budgets: a credential that is cached in the process costs the same with sharing as without (1.00 ± 0.03); a fetch asks Redis
 * three times, of which its caller waits for the first (the value and the end of the lock are written behind its back), and once
 * where another replica has fetched it. What an entry takes of Redis beyond its token is stated. Exit code 1 when exceeded. Needs
 * a Redis server, as the tests do.
 */
import { Redis } from 'ioredis'
import { createCredentialCache, type CacheSlot } from '../../src/cache/index.ts'
import { Secret, type Credential } from '../../src/core/index.ts'
import { createFleetReplica, createProvider, keyOf } from '../../test/support/cache/shared/fleet.ts'
import { createReplica } from '../../test/support/storage/redis-world.ts'
import { createManualClock, createRecordingMetrics } from '../../test/support/ports.ts'
import { OPERATOR, startDeployment } from '../../test/support/redis/deployment.ts'
import { operate } from '../../test/support/redis/operator.ts'

const ROUNDS = 61
const CALLS = 100_000
const CALLERS = 1_000
const ENTRIES = 5_000

const out = (text: string): void => void process.stdout.write(`${text}\n`)
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const deployment = await startDeployment()
const [node] = deployment.nodes
if (node === undefined) throw new Error('no Redis')
const open = () => createReplica(deployment.config(), 'bench/cache')
const stores = [open(), open()]
const provider = createProvider()
const clock = createManualClock()
const [one, other] = stores.map(({ store }) => createFleetReplica(store, { clock, provider }))
if (one === undefined || other === undefined) throw new Error('unreachable')

/** Requests to Redis that were seen while `work` was done, without what scripts do inside and what connections do by themselves. */
async function roundTrips(work: () => Promise<unknown>): Promise<number> {
  const redis = new Redis({ ...OPERATOR, port: node?.port ?? 0, host: '127.0.0.1' })
  const monitor = await redis.monitor()
  const seen = { count: 0 }
  monitor.on('monitor', (_time: string, [name = '']: string[], source: string) => {
    if (source !== 'lua' && !/^(?:ping|role|info|publish|replconf|auth|hello|client|monitor)$/i.test(name))
      seen.count += 1
  })
  // The monitor itself has begun when it sees this.
  await operate(node?.port ?? 0, ['set', 'extauth:bench', '1', 'px', '10'])
  while (seen.count === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  seen.count = 0
  await work()
  await new Promise((resolve) => setTimeout(resolve, 200))
  monitor.disconnect()
  redis.disconnect()
  return seen.count
}

/** CPU of warm hits with sharing over those without, the median of alternating rounds. */
async function warmRatio(): Promise<number> {
  const ports = { clock, metrics: createRecordingMetrics(), random: () => 0.5 }
  const caches = [
    createCredentialCache<Credential>({ ...ports, maxEntries: 10_000 }),
    createCredentialCache<Credential>({ ...ports, maxEntries: 10_000, shared: () => one?.shared }),
  ]
  const slots = caches.map((cache) => {
    const scope = cache.scope('ns/github', 'tokenExchange')
    return Array.from({ length: CALLERS }, (_, index): CacheSlot<Credential> => {
      const subject = `warm-${index}`
      const value: Credential = { kind: 'header', name: 'authorization', value: new Secret(`Bearer ${subject}`) }
      return {
        key: keyOf(subject),
        scope,
        generation: { configHash: 'hash', secrets: 'secrets' },
        issuer: 'https://id.example.com',
        subject,
        ownerId: subject,
        role: undefined,
        notAfterMs: undefined,
        deadlineMs: 10_000,
        fetch: () => Promise.resolve({ value, expiresAtMs: clock.now() + 3_600_000 }),
      }
    })
  })
  for (const [index, cache] of caches.entries()) for (const slot of slots[index] ?? []) await cache.get(slot)
  const cpu = (index: number): number => {
    const [cache, own] = [caches[index], slots[index] ?? []]
    const before = process.cpuUsage()
    for (let call = 0; call < CALLS; call++) {
      const slot = own[(call * 7919) % CALLERS]
      if (slot === undefined || cache?.get(slot) instanceof Promise) throw new Error('not from the cache')
    }
    const used = process.cpuUsage(before)
    return used.user + used.system
  }
  const ratios: number[] = []
  for (let round = -5; round < ROUNDS; round++) {
    const [first, second] = round % 2 === 0 ? [0, 1] : [1, 0]
    const times = new Map([[first, cpu(first)]])
    times.set(second, cpu(second))
    if (round >= 0) ratios.push((times.get(1) ?? Number.NaN) / (times.get(0) ?? Number.NaN))
  }
  return median(ratios)
}

const usedMemory = async (): Promise<number> =>
  Number(/used_memory:(\d+)/.exec(String(await operate(node.port, ['info', 'memory'])))?.[1])

try {
  // Scripts are loaded and connections are open.
  await one.get('first')
  await other.get('first')
  const cold = await roundTrips(() => one.get('cold'))
  const fetched = await roundTrips(() => other.get('cold'))
  const before = await usedMemory()
  let tokenBytes = 0
  for (let index = 0; index < ENTRIES; index++) tokenBytes += Buffer.byteLength(await one.get(`caller-${index}`))
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const withLocks = ((await usedMemory()) - before - tokenBytes) / ENTRIES
  for (const key of (await operate(node.port, ['keys', '*:l:*'])) as string[]) await operate(node.port, ['del', key])
  const alone = ((await usedMemory()) - before - tokenBytes) / ENTRIES
  const ratio = await warmRatio()
  out(
    `an entry takes ${alone.toFixed(0)} bytes of Redis beyond its token, and ${(withLocks - alone).toFixed(0)} for a minute for its lock`,
  )
  for (const [what, value, least, most] of [
    ['CPU of a credential that is cached in the process, with sharing / without', ratio, 0.97, 1.03],
    ['requests to Redis of a fetch, of which its caller waits for one', cold, 1, 3],
    ['requests to Redis where another replica has it', fetched, 1, 1],
  ] as const) {
    const isKept = value >= least && value <= most
    out(`${isKept ? 'kept    ' : 'EXCEEDED'} ${what}: ${value.toFixed(2)} (${least} to ${most})`)
    if (!isKept) process.exitCode = 1
  }
} finally {
  for (const replica of [one, other]) replica.shared.close()
  for (const { stores: opened } of stores) await opened.close()
  await deployment.close()
}
