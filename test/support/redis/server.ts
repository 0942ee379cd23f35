import { type RedisProcess, startRedisProcess } from '../../../lab/redis/process.ts'
import { redisServer } from './binaries.ts'

export type { RedisProcess }

export interface RedisProcessOptions {
  /** Lines of redis.conf; `port`, `bind` and `dir` come from here. */
  readonly config: readonly string[]
  readonly isSentinel?: boolean
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string }
  /** Default: a free one. */
  readonly port?: number
}

/** Starts a Redis or Sentinel of a test in a directory of its own and waits until its port answers. */
export async function startRedis({ tls, ...options }: RedisProcessOptions): Promise<RedisProcess> {
  const binary = await redisServer()
  if (tls === undefined) return startRedisProcess({ ...options, binary })
  const ports = (port: number) => [
    'port 0',
    `tls-port ${port}`,
    'tls-auth-clients no',
    'tls-replication yes',
    `tls-cert-file ${tls.cert}`,
    `tls-key-file ${tls.key}`,
    `tls-ca-cert-file ${tls.ca}`,
  ]
  return startRedisProcess({ ...options, binary, ports })
}
