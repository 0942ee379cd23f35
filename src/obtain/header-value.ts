import { Failure, Secret } from '../core/index.ts'

const MAX_BYTES = 8 * 1024
const CONTROL = /\p{Cc}/u

/**
 * A header value of `prefix` and a secret (decisions §3.3): at most 8 KiB and no control characters. What is not ASCII
 * is sent as the bytes that the secret has (UTF-8). Throws `config_error`, naming the secret by `label` only.
 */
export function headerValue(prefix: string, secret: Secret, label: string): Secret {
  const bytes = Buffer.from(secret.reveal(), 'utf8')
  if (bytes.length > MAX_BYTES) {
    throw new Failure('config_error', { detail: `secret ${label} is longer than 8 KiB, too long for a header` })
  }
  if (CONTROL.test(secret.reveal())) {
    throw new Failure('config_error', { detail: `secret ${label} has control characters and cannot be a header` })
  }
  // Header values are written as Latin-1, one byte per character.
  return new Secret(prefix + bytes.toString('latin1'))
}
