import { describe, expect, it } from 'vitest'
import { storageConfig } from '../../../src/compose/storage-config.ts'
import { embeddedAuthServer } from '../../../src/resources/embedded-auth-server.ts'
import { createTestSecrets } from '../../support/ports.ts'

const secrets = createTestSecrets({})
const secret = (name: string) => ({ name, key: 'value' })
const { storage } = embeddedAuthServer().shape

const read = (kvstore: object, namespace = 'team') => {
  const parsed = storage.parse({
    type: 'redis',
    redis: {
      aclUserConfig: { usernameSecretRef: secret('user'), passwordSecretRef: secret('password') },
      ...kvstore,
    },
  })
  const config = storageConfig(parsed ?? { type: 'memory' }, namespace, secrets)
  if (config.type !== 'kvstore') throw new Error('not a kvstore')
  return config.kvstore
}
const addresses = (...sentinelAddrs: string[]) => ({ sentinelConfig: { masterName: 'm', sentinelAddrs } })

describe('storage of a resource', () => {
  it('in memory needs nothing', () => {
    expect(storageConfig({ type: 'memory' }, 'team', secrets)).toEqual({ type: 'memory' })
  })

  it('has the defaults of the specification, and secrets as handles', () => {
    expect(read(addresses('sentinel.example.com:26379'))).toEqual({
      username: secrets.get('user/value'),
      password: secrets.get('password/value'),
      server: undefined,
      masterName: 'm',
      db: 0,
      sentinels: [{ host: 'sentinel.example.com', port: 26_379 }],
      tls: undefined,
      sentinelTls: undefined,
      dialTimeoutMs: 5_000,
      readTimeoutMs: 3_000,
      writeTimeoutMs: 3_000,
      waitReplicas: 0,
    })
  })

  it('is one server with an address of its own, and its default user where none is named', () => {
    const { username, server, sentinels } = read({
      addr: '[::1]:6380',
      aclUserConfig: { passwordSecretRef: secret('password') },
    })
    expect({ username, server, sentinels }).toEqual({
      username: undefined,
      server: { host: '::1', port: 6380 },
      sentinels: [],
    })
  })

  it('takes every field', () => {
    const { tls, sentinelTls, ...rest } = read({
      sentinelConfig: { masterName: 'm', db: 3, sentinelAddrs: ['[::1]:1', '127.0.0.1:65535'] },
      tls: { caCertSecretRef: secret('ca') },
      sentinelTls: { insecureSkipVerify: true },
      dialTimeout: '1s',
      readTimeout: '1m',
      writeTimeout: '250ms',
      waitReplicas: 2,
    })
    expect(tls).toEqual({ ca: secrets.get('ca/value'), insecureSkipVerify: false })
    expect(sentinelTls).toEqual({ ca: undefined, insecureSkipVerify: true })
    expect(rest).toMatchObject({
      db: 3,
      dialTimeoutMs: 1_000,
      readTimeoutMs: 60_000,
      writeTimeoutMs: 250,
      waitReplicas: 2,
    })
    expect(rest.sentinels).toEqual([
      { host: '::1', port: 1 },
      { host: '127.0.0.1', port: 65_535 },
    ])
  })

  it('finds a service by its name in the cluster, in the namespace of the resource where none is given', () => {
    const service = (sentinelService: object) =>
      read({ sentinelConfig: { masterName: 'm', sentinelService } }).sentinels
    expect(service({ name: 'redis' })).toEqual([{ host: 'redis.team.svc', port: 26_379 }])
    expect(service({ name: 'redis', namespace: 'data', port: 1234 })).toEqual([{ host: 'redis.data.svc', port: 1234 }])
  })

  it('reads 0s as the default, and caps what no timer can wait for', () => {
    expect(read({ ...addresses('a:1'), readTimeout: '0s' }).readTimeoutMs).toBe(3_000)
    expect(read({ ...addresses('a:1'), readTimeout: '2000h' }).readTimeoutMs).toBe(86_400_000)
  })

  it.each(['a:0', 'a:70000'])('refuses %s', (address) => {
    expect(() => read(addresses(address))).toThrow('expected host:port')
  })
})
