import { hash } from 'node:crypto'
import type { EpochMs } from '../core/index.ts'
import { canonicalHeaders, canonicalPath, canonicalPathOfS3, canonicalQuery } from './sigv4-canonical.ts'

/** SHA-256 of nothing, lower-case hex. */
export const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** Input of a signature. */
export interface SigningInput {
  readonly method: string
  /** Path and query as sent. */
  readonly target: string
  /** Flat header list as sent, `host` and `x-amz-date` included. */
  readonly headers: readonly string[]
  /** SHA-256 of the body as sent, lower-case hex. */
  readonly payloadHash: string
}

/** The signature's credential scope. */
export interface SigningScope {
  readonly region: string
  readonly service: string
  /** `YYYYMMDD'T'HHMMSS'Z'`, equal to the `x-amz-date` header. */
  readonly date: string
}

/** SHA-256 of a body, lower-case hex. */
export const payloadHash = (body: Uint8Array): string => (body.length === 0 ? EMPTY_HASH : hash('sha256', body, 'hex'))

/** `YYYYMMDD'T'HHMMSS'Z'` of a time. */
export function amzDate(nowMs: EpochMs): string {
  const iso = new Date(nowMs).toISOString()
  return `${iso.slice(0, 4)}${iso.slice(5, 7)}${iso.slice(8, 13)}${iso.slice(14, 16)}${iso.slice(17, 19)}Z`
}

/** `day/region/service/aws4_request`. */
const credentialScope = ({ date, region, service }: SigningScope): string =>
  `${date.slice(0, 8)}/${region}/${service}/aws4_request`

/** The key that signs for one day, region and service; derived from the secret by four HMACs. */
export function signingKey(secretAccessKey: string, day: string, region: string, service: string): Uint8Array {
  let key: Uint8Array = Buffer.from(`AWS4${secretAccessKey}`)
  for (const part of [day, region, service, 'aws4_request']) key = hmac(key, part, 'buffer')
  return key
}

/** Whether a service is of the S3 family: names of objects may hold anything, so paths are signed as they are. */
export const isS3 = (service: string): boolean => /^s3(?:express|-outposts|-object-lambda)?$/.test(service)

/** The canonical request for a service and the names of the headers that it signs. */
export function canonicalRequest(
  input: SigningInput,
  service?: string,
): { readonly text: string; readonly signedHeaders: string } {
  const { method, target, headers, payloadHash } = input
  const queryAt = target.indexOf('?')
  const sent = queryAt < 0 ? target : target.slice(0, queryAt)
  const path = service !== undefined && isS3(service) ? canonicalPathOfS3(sent) : canonicalPath(sent)
  const query = queryAt < 0 ? '' : canonicalQuery(target.slice(queryAt + 1))
  const { names, lines } = canonicalHeaders(headers)
  return { text: `${method}\n${path}\n${query}\n${lines}\n${names}\n${payloadHash}`, signedHeaders: names }
}

/** The string to sign: the hash of the canonical request in its scope. */
export function stringToSign(canonical: string, scope: SigningScope): string {
  // latin1, because that is how header values go over the wire: the hash is of the bytes that the service sees.
  const digest = hash('sha256', Buffer.from(canonical, 'latin1'), 'hex')
  return `AWS4-HMAC-SHA256\n${scope.date}\n${credentialScope(scope)}\n${digest}`
}

/** The signature, lower-case hex. */
export const signature = (key: Uint8Array, text: string): string => hmac(key, text, 'hex')

/** The value of the `Authorization` header: "Create a signed AWS API request", AWS4-HMAC-SHA256. */
export function authorization(input: SigningInput, scope: SigningScope, accessKeyId: string, key: Uint8Array): string {
  const { text, signedHeaders } = canonicalRequest(input, scope.service)
  const signed = signature(key, stringToSign(text, scope))
  return `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${credentialScope(scope)}, SignedHeaders=${signedHeaders}, Signature=${signed}`
}

const BLOCK = 64
const DIGEST = 32

/**
 * HMAC-SHA-256 (RFC 2104) of a text in latin1, by two one-shot hashes: 1.5 µs where `createHmac` takes 9 µs for the short
 * texts of SigV4, because no stream object is made. Lower-case hex or bytes.
 */
export function hmac(key: Uint8Array, text: string, output: 'hex'): string
export function hmac(key: Uint8Array, text: string, output: 'buffer'): Buffer
export function hmac(key: Uint8Array, text: string, output: 'hex' | 'buffer'): string | Buffer {
  const short = key.length > BLOCK ? hash('sha256', key, 'buffer') : key
  const inner = Buffer.allocUnsafe(BLOCK + text.length)
  const outer = Buffer.allocUnsafe(BLOCK + DIGEST)
  for (let index = 0; index < BLOCK; index++) {
    const byte = short[index] ?? 0
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  inner.write(text, BLOCK, 'latin1')
  outer.set(hash('sha256', inner, 'buffer'), BLOCK)
  return output === 'hex' ? hash('sha256', outer, 'hex') : hash('sha256', outer, 'buffer')
}
