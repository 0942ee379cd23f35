import { hash } from 'node:crypto'

/**
 * SHA-256, base64url, over length-prefixed parts, so that different lists have different keys (decisions §4). Hashed
 * as UTF-16, because UTF-8 encodes all lone surrogates alike, and a claim may contain one.
 */
export function hashKey(parts: readonly string[]): string {
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64url')
}
