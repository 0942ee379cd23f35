import { Redis } from 'ioredis'
import { OPERATOR } from './deployment.ts'

/** Sends an operator's command directly to Redis. */
export async function operate(port: number, [name = '', ...args]: readonly (string | Buffer)[]): Promise<unknown> {
  const redis = new Redis({ ...OPERATOR, port, host: '127.0.0.1', retryStrategy: null, lazyConnect: true })
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    return await redis.call(String(name), ...args)
  } finally {
    redis.disconnect()
  }
}
