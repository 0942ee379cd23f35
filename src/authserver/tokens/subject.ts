import { createHash } from 'node:crypto'

/**
 * `sub` of access tokens: base64url of SHA-256 over the length-prefixed identity provider and upstream subject, so
 * that no two pairs collide (authserver.md §4.6). The same on every replica and after a restart, regardless of the
 * upstream's name in the configuration.
 */
export function subjectOf(identityProvider: string, subject: string): string {
  const hash = createHash('sha256')
  for (const part of [identityProvider, subject]) {
    const bytes = Buffer.from(part)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    hash.update(length).update(bytes)
  }
  return hash.digest('base64url')
}
