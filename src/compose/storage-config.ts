import { Failure, type Secrets } from '../core/index.ts'
import { parseGoDuration } from '../fields/index.ts'
import type { LocalStorage, Storage } from '../resources/index.ts'
import type { Endpoint, StorageConfig, StoreTls } from '../storage/index.ts'

const LONGEST_MS = 24 * 3_600_000

type KvStore = Extract<Storage, { type: 'kvstore' }>['kvstore']

/**
 * Converts `storage` of a resource to `StorageConfig`: references become handles, a service its cluster DNS name
 * (authserver.md §7), durations milliseconds; `0s` means the default, as in other clients of this store. Throws `config_error`.
 */
export function storageConfig(storage: LocalStorage, namespace: string, secrets: Secrets): StorageConfig {
  if (storage.type === 'memory') return storage
  if (storage.type === 'file') return { type: 'file', directory: storage.file.directory }
  const { aclUserConfig, addr, sentinelConfig, ...kvstore } = storage.kvstore
  const tls = (options: KvStore['tls']): StoreTls | undefined =>
    options && {
      ca: options.caCertSecretRef && secrets.handle(options.caCertSecretRef),
      insecureSkipVerify: options.insecureSkipVerify,
    }
  return {
    type: 'kvstore',
    kvstore: {
      username: aclUserConfig.usernameSecretRef && secrets.handle(aclUserConfig.usernameSecretRef),
      password: secrets.handle(aclUserConfig.passwordSecretRef),
      server: addr === undefined ? undefined : endpointOf(addr, 'the store'),
      masterName: sentinelConfig?.masterName ?? '',
      db: sentinelConfig?.db ?? 0,
      sentinels: sentinelConfig === undefined ? [] : sentinelsOf(sentinelConfig, namespace),
      tls: tls(kvstore.tls),
      sentinelTls: tls(kvstore.sentinelTls),
      dialTimeoutMs: duration(kvstore.dialTimeout, 5_000),
      readTimeoutMs: duration(kvstore.readTimeout, 3_000),
      writeTimeoutMs: duration(kvstore.writeTimeout, 3_000),
      waitReplicas: kvstore.waitReplicas,
    },
  }
}

function sentinelsOf(config: NonNullable<KvStore['sentinelConfig']>, namespace: string): readonly Endpoint[] {
  const { sentinelService: service, sentinelAddrs = [] } = config
  if (service !== undefined) {
    return [{ host: `${service.name}.${service.namespace ?? namespace}.svc`, port: service.port }]
  }
  return sentinelAddrs.map((address) => endpointOf(address, 'a sentinel'))
}

function endpointOf(address: string, whose: string): Endpoint {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(address) ?? []
  const host = bracketed ?? plain
  if (host === undefined || !(Number(port) > 0 && Number(port) < 65_536))
    throw new Failure('config_error', { detail: `${JSON.stringify(address)} is not host:port of ${whose}` })
  return { host, port: Number(port) }
}

function duration(text: KvStore['dialTimeout'], fallback: number): number {
  const ms = Math.round(parseGoDuration(text) ?? 0)
  return ms === 0 ? fallback : Math.min(LONGEST_MS, ms)
}
