import { hash } from 'node:crypto'

/**
 * SHA-256, base64url, over length-prefixed parts: no two different lists give the same key, wherever their parts are
 * cut (decisions §4). Hashed as UTF-16, because UTF-8 writes every lone surrogate alike and a claim may hold one.
 */
export function hashKey(parts: readonly string[]): string {
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64url')
}
