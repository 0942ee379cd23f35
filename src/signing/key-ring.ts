import { Failure, type Log, type SecretHandle } from '../core/index.ts'
import { follow } from './followed.ts'
import { readSigningKey, type SigningKey } from './signing-key.ts'

/** The keys of our tokens: the first signs, all verify (authserver.md §5). */
export interface KeyRing {
  /** Throws `secret_unavailable` or `config_error` while there has never been a usable first key. */
  keys(): readonly SigningKey[]
  /** The key set document (RFC 7517 §5), rendered; the same object as long as the keys are the same. */
  document(): Buffer
  /** True when no key is configured: tokens end with this process and other replicas don't know them. */
  readonly isEphemeral: boolean
}

/** Follows `signingKeySecretRefs`; without any, the key that was made at start. */
export function createKeyRing(
  handles: readonly SecretHandle[],
  made: () => SigningKey,
  log: Log,
  onChanged?: () => void,
): KeyRing {
  const isEphemeral = handles.length === 0
  const ring = follow(handles, () => render(isEphemeral ? [made()] : readAll(handles)), 'signing keys', log, onChanged)
  return { isEphemeral, keys: () => ring.current().keys, document: () => ring.current().document }
}

function readAll(handles: readonly SecretHandle[]): readonly SigningKey[] {
  const byId = new Map<string, SigningKey>()
  for (const [index, handle] of handles.entries()) {
    const key = index === 0 ? readSigningKey(handle.current(), handle.label) : readLater(handle)
    // The same key named twice is one key.
    if (key !== undefined && !byId.has(key.kid)) byId.set(key.kid, key)
  }
  return [...byId.values()]
}

/** A key that only verifies may be missing (it was taken away, or is still to come); one that is no key may not. */
function readLater(handle: SecretHandle): SigningKey | undefined {
  try {
    return readSigningKey(handle.current(), handle.label)
  } catch (error) {
    if (error instanceof Failure && error.code === 'secret_unavailable') return undefined
    throw error
  }
}

function render(keys: readonly SigningKey[]): { keys: readonly SigningKey[]; document: Buffer } {
  return { keys, document: Buffer.from(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })) }
}
