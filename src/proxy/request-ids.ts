import { randomFillSync } from 'node:crypto'

const ID_BYTES = 12
const POOL = 256

/** A source of request ids: 96 random bits each, base64url. Randomness is fetched for many at once. */
export function createRequestIds(): () => string {
  const pool = Buffer.alloc(ID_BYTES * POOL)
  let at = pool.length
  return () => {
    if (at === pool.length) {
      randomFillSync(pool)
      at = 0
    }
    at += ID_BYTES
    return pool.toString('base64url', at - ID_BYTES, at)
  }
}
