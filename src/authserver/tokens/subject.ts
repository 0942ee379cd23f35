import { createHash } from 'node:crypto'

/**
 * `sub` of our tokens: base64url of SHA-256 over the identity provider and the upstream's own name for the user, each with its
 * length before it, so that no two pairs are one text (authserver.md §4.6). The same on every replica and after a restart,
 * whatever the upstream is called in the configuration.
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
