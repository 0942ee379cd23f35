import { afterEach, expect, it } from 'vitest'
import { createStores, type RedisConfig } from '../../../src/storage/index.ts'
import {
  createManualClock,
  createRecordingLog,
  createRecordingMetrics,
  createTestSecrets,
} from '../../support/ports.ts'
import { startRespServer, type RespServer } from '../../support/redis/resp.ts'
import { bytes } from '../../support/storage/worlds.ts'

const servers: RespServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** Sentinel and master in one: takes everything, has nothing. */
async function startRedisStandIn(): Promise<RespServer> {
  const server = await startRespServer((words, port) => {
    const [name, ask] = words
    if (name === 'sentinel') return ask === 'get-master-addr-by-name' ? ['127.0.0.1', String(port)] : []
    if (name === 'role') return ['master', 0, []]
    return name === 'get' ? null : '+OK'
  })
  servers.push(server)
  return server
}

function createWorld(port: number) {
  const metrics = createRecordingMetrics()
  const stores = createStores({ clock: createManualClock(), log: createRecordingLog(), metrics, random: () => 0.5 })
  const secrets = createTestSecrets({ user: 'u', password: 'p', other: 'o' })
  const config = (overrides: Partial<RedisConfig> = {}) => ({
    type: 'kvstore' as const,
    kvstore: {
      username: secrets.get('user'),
      password: secrets.get('password'),
      masterName: 'm',
      db: 0,
      sentinels: [{ host: '127.0.0.1', port }],
      tls: undefined,
      sentinelTls: undefined,
      dialTimeoutMs: 5_000,
      readTimeoutMs: 3_000,
      writeTimeoutMs: 3_000,
      waitReplicas: 0,
      ...overrides,
    },
  })
  return { stores, metrics, secrets, config }
}

it('equal configurations share one connection, other ones have their own, and keys never meet', async () => {
  const server = await startRedisStandIn()
  const { stores, metrics, secrets, config } = createWorld(server.port)
  const [one, two] = [stores.open(config(), 'ns/one'), stores.open(config(), 'ns/two')]
  const other = stores.open(config({ password: secrets.get('other') }), 'ns/one')
  for (const store of [one, two, other]) await store.put('a', bytes('1'), 1_000)
  expect(metrics.value('extauth_store_connects_total', 'commands', 'ok')).toBe(2)
  expect(server.commands.filter((command) => command.startsWith('auth'))).toHaveLength(2)
  const written = server.commands.filter((command) => command.startsWith('set')).map((command) => command.split(' ')[1])
  expect(written).toEqual(['extauth:{ns/one}:v:a', 'extauth:{ns/two}:v:a', 'extauth:{ns/one}:v:a'])

  await one.close()
  await two.put('b', bytes('1'), 1_000)
  await two.close()
  await stores.open(config(), 'ns/one').put('c', bytes('1'), 1_000)
  expect(metrics.value('extauth_store_connects_total', 'commands', 'ok'), 'ends with the last user').toBe(3)
  await stores.close()
})

it('what listens to memory hears no more when its store is closed, and others do', async () => {
  const { stores } = createWorld(1)
  const heard: string[] = []
  const listen = (name: string) => {
    const store = stores.open({ type: 'memory' }, 'ns/one')
    const listener = { onMessage: (text: string) => void heard.push(`${name} ${text}`), onGap: () => undefined }
    return { store, subscription: store.subscribe('channel', listener) }
  }
  const [before, other, after] = [listen('before'), listen('other'), listen('after')]
  other.subscription.close()
  await before.store.close()
  await after.store.publish('channel', 'news')
  expect(heard).toEqual(['after news'])
  await stores.close()
})

it('reopening a memory store of one resource returns the same memory', async () => {
  const { stores } = createWorld(1)
  const first = stores.open({ type: 'memory' }, 'ns/one')
  await first.put('a', bytes('1'), 60_000)
  await first.close()
  expect((await stores.open({ type: 'memory' }, 'ns/one').get('a'))?.value).toEqual(bytes('1'))
  expect(await stores.open({ type: 'memory' }, 'ns/two').get('a')).toBeUndefined()
  await stores.close()
})
