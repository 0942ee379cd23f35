import { Failure, headerSecretProblem, Secret } from '../core/index.ts'

/**
 * A header value of `prefix` and a secret (decisions §3.3): at most 8 KiB and no control characters. What is not ASCII
 * is sent as the bytes that the secret has (UTF-8). Throws `config_error`, naming the secret by `label` only.
 */
export function headerValue(prefix: string, secret: Secret, label: string): Secret {
  const text = secret.reveal()
  const problem = headerSecretProblem(text, prefix === '' ? 'header value' : 'bearer token')
  if (problem !== undefined)
    throw new Failure('config_error', { detail: `secret ${label} cannot be a header: ${problem}`, secret: label })
  // Header values are written as Latin-1, one byte per character.
  return new Secret(prefix + Buffer.from(text, 'utf8').toString('latin1'))
}
