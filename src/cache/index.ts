export { hashKey } from './hash-key.ts'
export { createTtlLru, type RemovalReason, type TtlLru, type TtlLruOptions } from './ttl-lru.ts'
