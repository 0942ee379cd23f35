import type { Sealed } from '../core/index.ts'
import { canonicalRequest, stringToSign } from './sigv4.ts'

/** The intermediate values of a signature: "Create a signed AWS API request", steps 1 to 3. */
export interface SigningSteps {
  /** Holds the session token, which is one of the signed headers. */
  readonly canonicalRequest: string
  readonly stringToSign: string
}

const OWN = 'authorization'

/**
 * Recomputes the intermediate values of a sealed request's signature; undefined without one. For comparison with a
 * service's error; never used while forwarding.
 */
export function signingSteps({ armed, method, path, headers }: Sealed): SigningSteps | undefined {
  const { credential } = armed
  if (credential.kind !== 'aws') return undefined
  const { region, service } = credential
  const signed: string[] = []
  let date = ''
  let payloadHash = ''
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    const value = headers[index + 1] ?? ''
    if (name === OWN) continue
    signed.push(name, value)
    if (name === 'x-amz-date') date = value
    else if (name === 'x-amz-content-sha256') payloadHash = value
  }
  const { text } = canonicalRequest({ method, target: path, headers: signed, payloadHash }, service)
  return { canonicalRequest: text, stringToSign: stringToSign(text, { date, region, service }) }
}
