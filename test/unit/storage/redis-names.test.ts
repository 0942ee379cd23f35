import { createServer, type Server } from 'node:tls'
import { afterEach, expect, it } from 'vitest'
import type { RedisConfig } from '../../../src/storage/index.ts'
import { createTestSecrets } from '../../support/ports.ts'
import { startRespServer } from '../../support/redis/resp.ts'
import { TLS } from '../../support/tls.ts'
import { createReplica, newScope } from '../../support/storage/redis-world.ts'

// A certificate of the right CA for another name must not authenticate a sentinel or a master.

const ELSEWHERE = '127.0.0.2'
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** Shows a certificate for 127.0.0.1 and localhost at another address, and keeps what it is sent. */
async function impostor() {
  const heard: Buffer[] = []
  const server: Server = createServer({ cert: TLS.server.cert, key: TLS.server.key }, (socket) => {
    socket.on('error', () => undefined).on('data', (data: Buffer) => void heard.push(data))
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, ELSEWHERE, resolve))
  cleanups.push(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  return { port: address.port, heard }
}

function storeOf(overrides: Partial<RedisConfig>) {
  const secrets = createTestSecrets({ username: 'extauth', password: 'secret-of-extauth', ca: TLS.ca.toString() })
  const replica = createReplica(
    {
      username: secrets.get('username'),
      password: secrets.get('password'),
      masterName: 'mymaster',
      db: 0,
      sentinels: [],
      tls: { ca: secrets.get('ca'), insecureSkipVerify: false },
      sentinelTls: undefined,
      dialTimeoutMs: 2_000,
      readTimeoutMs: 1_000,
      writeTimeoutMs: 1_000,
      waitReplicas: 0,
      ...overrides,
    },
    newScope(),
  )
  cleanups.push(() => replica.stores.close())
  return { ...replica, trust: { ca: secrets.get('ca'), insecureSkipVerify: false } }
}

it('a master with a certificate of another name hears nothing', async () => {
  const evil = await impostor()
  const sentinel = await startRespServer((words) =>
    words[1] === 'get-master-addr-by-name' ? [ELSEWHERE, String(evil.port)] : [],
  )
  cleanups.push(() => sentinel.close())
  const { store } = storeOf({ sentinels: [{ host: '127.0.0.1', port: sentinel.port }] })
  await expect(store.get('a')).rejects.toMatchObject({ kind: 'unavailable' })
  expect(store.health().detail).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  expect(evil.heard).toEqual([])
})

it('a sentinel with a certificate of another name hears nothing', async () => {
  const evil = await impostor()
  const sentinelTls = storeOf({}).trust
  const { store, log } = storeOf({ sentinels: [{ host: ELSEWHERE, port: evil.port }], sentinelTls })
  await expect(store.get('a')).rejects.toMatchObject({ kind: 'unavailable', cause: 'no sentinel responds' })
  expect(log.lines.join('\n')).toContain(String(evil.port))
  expect(evil.heard).toEqual([])
})
