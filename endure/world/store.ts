import { Redis } from 'ioredis'
import { LAB_REDIS_RULES } from '../../lab/index.ts'
import { APPLICATION, type Deployment, OPERATOR, startDeployment } from '../../test/support/redis/deployment.ts'
import { operate } from '../../test/support/redis/operator.ts'
import type { KeyLife } from '../growth/keys.ts'
import { type Gate, openGate } from './gate.ts'

/** Redis with two replicas of its own and three sentinels, and the network between it and the proxies. */
export interface Store {
  readonly deployment: Deployment
  /** Configuration for the proxies. */
  readonly sentinelAddresses: readonly string[]
  readonly masterName: string
  readonly user: typeof APPLICATION
  /** Cuts all proxies off, or lets them in again. */
  setNetwork(mode: 'open' | 'down' | 'silent'): void
  /** Which of the nodes is the master now; undefined while none is. */
  master(): Promise<number | undefined>
  /** All keys with their values as bytes in latin1, as in a stolen backup. */
  dump(): Promise<readonly string[]>
  /** Each key with the milliseconds that it has to live. */
  lives(): Promise<readonly KeyLife[]>
  /** How many keys there are; undefined while there is no master. */
  keys(): Promise<number | undefined>
  close(): Promise<void>
}

const KEYS_AT_ONCE = '500'

/** Starts it. A sentinel returns the address of a gate instead of a node's, so that a failover is seen through the gates too. */
export async function openStore(): Promise<Store> {
  const deployment = await startDeployment({ replicas: 2, sentinels: 3, rules: LAB_REDIS_RULES })
  const nodeGates: Gate[] = []
  for (const { port } of deployment.nodes) nodeGates.push(await openGateTo(port))
  const names = deployment.nodes.map(({ port }, index) => [String(port), String(nodeGates[index]?.port)] as const)
  // All ports here have five digits, so that the lengths in the protocol stay right.
  const rewrite = (chunk: Buffer): Buffer =>
    Buffer.from(
      names.reduce((text, [node, gate]) => text.replaceAll(node, gate), chunk.toString('latin1')),
      'latin1',
    )
  const sentinelGates: Gate[] = []
  for (const { port } of deployment.sentinels) sentinelGates.push(await openGateTo(port, rewrite))
  const gates = [...nodeGates, ...sentinelGates]

  const master = async (): Promise<number | undefined> => {
    let [found, most]: [number | undefined, number] = [undefined, -1]
    for (const [index, { port }] of deployment.nodes.entries()) {
      const role = await operate(port, ['ROLE']).catch(() => undefined)
      if (!Array.isArray(role) || role[0] !== 'master') continue
      // A returning master believes so, too, until a sentinel demotes it; no replica follows it.
      const followers = (role[2] as readonly unknown[]).length
      if (followers > most) [found, most] = [index, followers]
    }
    return found
  }
  const portOfMaster = async (): Promise<number | undefined> => {
    const index = await master()
    return index === undefined ? undefined : deployment.nodes[index]?.port
  }
  return {
    deployment,
    sentinelAddresses: sentinelGates.map(({ port }) => `127.0.0.1:${port}`),
    masterName: 'mymaster',
    user: APPLICATION,
    setNetwork: (mode) => gates.forEach((gate) => gate.set(mode)),
    master,
    async dump() {
      const port = await portOfMaster()
      return port === undefined ? [] : dumpOf(port)
    },
    async lives() {
      const port = await portOfMaster()
      return port === undefined ? [] : livesOf(port)
    },
    async keys() {
      const port = await portOfMaster()
      if (port === undefined) return undefined
      return Number(await operate(port, ['DBSIZE']).catch(() => Number.NaN))
    },
    close: async () => {
      await Promise.all(gates.map((gate) => gate.close()))
      await deployment.close()
    },
  }
}

async function openGateTo(target: number, rewrite?: (chunk: Buffer) => Buffer): Promise<Gate> {
  const gate = await openGate(rewrite === undefined ? {} : { rewrite })
  gate.target = target
  return gate
}

async function dumpOf(port: number): Promise<string[]> {
  const texts: string[] = []
  for await (const { keys, redis } of keysAt(port)) {
    const values = await Promise.all(keys.map((key) => valueOf(redis, key)))
    texts.push(...keys, ...values)
  }
  return texts
}

async function livesOf(port: number): Promise<KeyLife[]> {
  const lives: KeyLife[] = []
  for await (const { keys, redis } of keysAt(port)) {
    const left = await Promise.all(keys.map((key) => redis.pttl(key)))
    for (const [index, key] of keys.entries()) {
      const ms = left[index] ?? -2
      // A master that has ended since does not count.
      if (ms !== -2) lives.push([key, ms])
    }
  }
  return lives
}

/** Some at a time, so that what is asked of them is on its way together. */
async function* keysAt(port: number): AsyncGenerator<{ readonly keys: readonly string[]; readonly redis: Redis }> {
  const redis = new Redis({ ...OPERATOR, port, host: '127.0.0.1', retryStrategy: null, lazyConnect: true })
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    let cursor = '0'
    do {
      const [next, keys] = await redis.scan(cursor, 'COUNT', KEYS_AT_ONCE)
      yield { keys, redis }
      cursor = next
    } while (cursor !== '0')
  } finally {
    redis.disconnect()
  }
}

async function valueOf(redis: Redis, key: string): Promise<string> {
  const type = await redis.type(key)
  if (type === 'string') return (await redis.getBuffer(key))?.toString('latin1') ?? ''
  if (type === 'zset') return JSON.stringify(await redis.zrange(key, '0', '-1'))
  if (type === 'hash') return JSON.stringify(await redis.hgetall(key))
  return ''
}
