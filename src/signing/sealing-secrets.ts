import { Failure, type Log, type Secret, type SecretHandle } from '../core/index.ts'
import { createSealingKeys, type SealingKeys } from '../storage/index.ts'
import { follow } from './followed.ts'

/** Bytes of the current HMAC secret (specification, `hmacSecretRefs`). */
const LEAST_BYTES = 32

/**
 * The secrets of `hmacSecretRefs` as sealing keys: the first seals and must have at least 32 bytes, all open. Without any, the one
 * that was made at start does. `current` throws `secret_unavailable` or `config_error` while there has never been a usable first one.
 */
export function createSealingSecrets(
  handles: readonly SecretHandle[],
  made: () => SealingKeys,
  log: Log,
  onChanged?: () => void,
): SealingKeys {
  if (handles.length === 0) return made()
  const keys = createSealingKeys(handles)
  const checked = follow(handles, () => check(keys.current(), handles[0]?.label ?? ''), 'HMAC secrets', log, onChanged)
  return { isEphemeral: false, current: () => checked.current(), refresh: () => checked.refresh() }
}

function check(secrets: readonly Secret[], label: string): readonly Secret[] {
  const [first] = secrets
  if (first === undefined || first.bytes().length < LEAST_BYTES)
    throw new Failure('config_error', {
      detail: `the HMAC secret ${label} has fewer than ${LEAST_BYTES} bytes`,
      secret: label,
    })
  return secrets
}
