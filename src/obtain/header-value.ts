import { Failure, headerSecretProblem, Secret } from '../core/index.ts'

/**
 * Builds a header value from `prefix` and a secret (decisions §3.3): at most 8 KiB and no control characters.
 * Non-ASCII is sent as UTF-8 bytes. Throws `config_error`, which names the secret by `label` only.
 */
export function headerValue(prefix: string, secret: Secret, label: string): Secret {
  const text = secret.reveal()
  const problem = headerSecretProblem(text, prefix === '' ? 'header value' : 'bearer token')
  if (problem !== undefined)
    throw new Failure('config_error', { detail: `secret ${label} cannot be a header: ${problem}`, secret: label })
  // Header values are written as Latin-1, one byte per character.
  return new Secret(prefix + Buffer.from(text, 'utf8').toString('latin1'))
}
