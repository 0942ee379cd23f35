import { randomBytes } from 'node:crypto'
import { Secret } from '../../src/core/index.ts'
import { type RedisProcess, startRedisProcess } from './process.ts'

/** ACL of the product's user, as in docs/redis.md. */
export const LAB_REDIS_RULES =
  '~extauth:* &extauth:* +ping +role +select +get +set +getdel +del +eval +evalsha +getrange +pexpire +pttl +time ' +
  '+zadd +zcard +zrange +zrem +zscore +publish +subscribe +unsubscribe +wait +info'

/** A Redis and the Sentinel that knows it, on loopback, with users as an operator would make them. */
export interface LabRedis {
  readonly masterName: string
  /** `127.0.0.1:PORT` each. */
  readonly address: string
  readonly sentinelAddress: string
  /** The user of the product. */
  readonly username: string
  readonly password: Secret
  close(): Promise<void>
}

/** Ports on loopback; default free ones. */
export interface LabRedisPorts {
  readonly redis?: number | undefined
  readonly sentinel?: number | undefined
}

const MASTER = 'lab'
const USER = 'extauth'

const password = (): string => randomBytes(24).toString('base64url')

/**
 * Starts both with `binary`, a path of `redis-server` (or `valkey-server`); nothing is kept when they end. Throws when one does
 * not start, with what it printed.
 */
export async function startLabRedis(binary: string, ports: LabRedisPorts = {}): Promise<LabRedis> {
  const started: RedisProcess[] = []
  const close = async (): Promise<void> => {
    for (const one of started.splice(0).toReversed()) await one.close()
  }
  const own = password()
  const sentinels = password()
  try {
    const config = [
      'user default off',
      `user ${USER} on >${own} resetchannels ${LAB_REDIS_RULES}`,
      `user sentinel on >${sentinels} ~* &* +@all`,
    ]
    const redis = await startRedisProcess({
      binary,
      config,
      ...(ports.redis === undefined ? {} : { port: ports.redis }),
    })
    started.push(redis)
    const watches = [
      `sentinel monitor ${MASTER} 127.0.0.1 ${redis.port} 1`,
      `sentinel auth-user ${MASTER} sentinel`,
      `sentinel auth-pass ${MASTER} ${sentinels}`,
    ]
    const sentinel = await startRedisProcess({
      binary,
      isSentinel: true,
      config: watches,
      ...(ports.sentinel === undefined ? {} : { port: ports.sentinel }),
    })
    started.push(sentinel)
    return {
      masterName: MASTER,
      address: `127.0.0.1:${redis.port}`,
      sentinelAddress: `127.0.0.1:${sentinel.port}`,
      username: USER,
      password: new Secret(own),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
