import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { RedisConfig } from '../../../src/storage/index.ts'
import { createSentinels } from '../../../src/storage/redis/sentinels.ts'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { startRespServer, type RespReply, type RespServer } from '../../support/redis/resp.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { bytes } from '../../support/storage/worlds.ts'

const servers: RespServer[] = []
const replicas: Replica[] = []
let deployment: Deployment

beforeAll(async () => {
  deployment = await startDeployment({ sentinels: 2 })
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const { stores } of replicas.splice(0)) await stores.close()
  for (const server of servers.splice(0)) await server.close()
})

async function respServer(answer: (words: readonly string[], port: number) => RespReply | undefined) {
  const server = await startRespServer(answer)
  servers.push(server)
  return server
}

/** A sentinel that names this master, and these other sentinels. */
const sentinel = (master: (port: number) => RespReply, others: RespReply = []) =>
  respServer((words, port) => (words[1] === 'get-master-addr-by-name' ? master(port) : others))

/** A false master that accepts every password. */
const trap = () => respServer((words) => (words[0] === 'role' ? ['master', 0, []] : '+OK'))

const endpoints = (...list: readonly { readonly port: number }[]) =>
  list.map(({ port }) => ({ host: '127.0.0.1', port }))

const finder = (sentinels: RedisConfig['sentinels'], overrides: Partial<RedisConfig> = {}) =>
  createSentinels({
    masterName: 'mymaster',
    sentinelTls: undefined,
    dialTimeoutMs: 2_000,
    readTimeoutMs: 2_000,
    writeTimeoutMs: 2_000,
    ...overrides,
    sentinels,
  })

describe('one sentinel that lies', () => {
  it('is outvoted, and credentials never go where it points', async () => {
    const evil = await trap()
    const liar = await sentinel(() => ['127.0.0.1', String(evil.port)])
    const honest = deployment.config().sentinels
    for (const sentinels of [
      [...endpoints(liar), ...honest],
      [...honest, ...endpoints(liar)],
    ]) {
      const replica = createReplica(deployment.config({ sentinels }), newScope())
      replicas.push(replica)
      await replica.store.put('a', bytes('1'), 60_000)
      expect((await replica.store.get('a'))?.value).toEqual(bytes('1'))
    }
    expect(evil.commands).toEqual([])
    expect(liar.commands.length).toBeGreaterThan(0)
    expect(liar.commands.join('\n')).not.toMatch(/auth|password/i)
  })

  it('that names friends of its own has no more votes for it', async () => {
    const evil = await trap()
    const friends = await Promise.all([1, 2, 3].map(() => sentinel(() => ['127.0.0.1', String(evil.port)])))
    const named = friends.map(({ port }) => ['ip', '127.0.0.1', 'port', String(port)])
    const liar = await sentinel(() => ['127.0.0.1', String(evil.port)], named)
    const replica = createReplica(
      deployment.config({ sentinels: [...endpoints(liar), ...deployment.config().sentinels] }),
      newScope(),
    )
    replicas.push(replica)
    await replica.store.put('a', bytes('1'), 60_000)
    expect(friends.flatMap(({ commands }) => commands)).toEqual([])
    expect(evil.commands).toEqual([])
  })

  it('against one that is honest is not followed, nor is the honest one', async () => {
    const evil = await trap()
    const liar = await sentinel(() => ['127.0.0.1', String(evil.port)])
    const [honest] = deployment.config().sentinels
    const sentinels = honest === undefined ? [] : [...endpoints(liar), honest]
    const replica = createReplica(deployment.config({ sentinels }), newScope())
    replicas.push(replica)
    await expect(replica.store.get('a')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(replica.store.health()).toMatchObject({ isUp: false, detail: 'the sentinels name different masters' })
    expect(evil.commands).toEqual([])
  })
})

describe('the master', () => {
  it('is found while most sentinels are down or silent', async () => {
    const silent = await respServer(() => undefined)
    const honest = await sentinel(() => ['127.0.0.1', '1234'])
    const gone = { port: 1 }
    const found = await finder(endpoints(silent, gone, honest)).master()
    expect(found).toEqual({ host: '127.0.0.1', port: 1234 })
  })

  it('is found by sentinels that others named, when none of the configured ones answers any more', async () => {
    const other = await sentinel(() => ['127.0.0.1', '1234'])
    const first = await sentinel(() => ['127.0.0.1', '1234'], [['ip', '127.0.0.1', 'port', String(other.port)]])
    const sentinels = finder(endpoints(first))
    await sentinels.master()
    await first.close()
    servers.splice(servers.indexOf(first), 1)
    expect(await sentinels.master()).toEqual({ host: '127.0.0.1', port: 1234 })
    expect(other.commands).toContain('sentinel get-master-addr-by-name mymaster')
  })

  it('is found behind a name', async () => {
    const honest = await sentinel(() => ['127.0.0.1', '1234'])
    expect(await finder([{ host: 'localhost', port: honest.port }]).master()).toMatchObject({ port: 1234 })
  })

  it.each([
    ['no sentinel responds', () => [1]],
    ['no sentinel knows the master name', async () => [(await sentinel(() => null)).port]],
    ['no sentinel knows the master name', async () => [(await sentinel(() => ['', '1'])).port]],
    ['no sentinel knows the master name', async () => [(await sentinel(() => ['127.0.0.1', '70000'])).port]],
    ['no sentinel knows the master name', async () => [(await sentinel(() => 'nonsense')).port]],
    [
      'a sentinel rejects the query (NOAUTH)',
      async () => [(await sentinel(() => '-NOAUTH Authentication required.')).port],
    ],
  ])('is not found: %s', async (cause, make) => {
    const ports = await make()
    const found = finder(endpoints(...ports.map((port) => ({ port })))).master()
    await expect(found).rejects.toMatchObject({ name: 'StoreError', kind: 'unavailable', cause })
  })

  it('is asked for once by many at once', async () => {
    const honest = await sentinel(() => ['127.0.0.1', '1234'])
    const sentinels = finder(endpoints(honest))
    await Promise.all([sentinels.master(), sentinels.master(), sentinels.master()])
    expect(honest.commands.filter((command) => command.includes('get-master'))).toHaveLength(1)
  })

  it('that is a replica is not used', async () => {
    const replica = await respServer((words) => (words[0] === 'role' ? ['slave', '127.0.0.1', 1] : '+OK'))
    const wrong = await sentinel(() => ['127.0.0.1', String(replica.port)])
    const product = createReplica(deployment.config({ sentinels: endpoints(wrong) }), newScope())
    replicas.push(product)
    await expect(product.store.put('a', bytes('1'), 1_000)).rejects.toMatchObject({ kind: 'unavailable' })
    expect(product.store.health().detail).toBe('the server named by the sentinels is not a master')
    expect(replica.commands.some((command) => command.startsWith('set'))).toBe(false)
  })
})
