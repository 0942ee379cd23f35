import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { EpochMs } from '../src/core/index.ts'

/** Temporary credentials as the service that issued them knows them. */
export interface IssuedCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  readonly expiresAtMs: EpochMs
  readonly roleArn: string
  readonly sessionName: string
  readonly subject: string
  /** Session tags by key. */
  readonly tags?: Readonly<Record<string, string>>
  readonly sourceIdentity?: string
}

export interface Sigv4Request {
  readonly method: string
  /** Path and query as on the request line. */
  readonly target: string
  /** Flat header list as on the wire. */
  readonly headers: readonly string[]
  readonly body: Uint8Array
}

export interface Sigv4Expectation {
  readonly region: string
  readonly service: string
  readonly nowMs: EpochMs
  readonly lookup: (accessKeyId: string) => IssuedCredentials | undefined
}

/** A refusal as AWS's JSON protocols say it. */
export interface Sigv4Refusal {
  readonly ok: false
  readonly status: number
  /** Value of `x-amzn-errortype` and of `__type`. */
  readonly type: string
  readonly message: string
}

export type Sigv4Verdict = { readonly ok: true; readonly credentials: IssuedCredentials } | Sigv4Refusal

const WINDOW_MS = 5 * 60_000
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([\w]{16,128})\/(\d{8})\/([a-z0-9-]+)\/([a-z0-9-]+)\/aws4_request, ?SignedHeaders=([a-z0-9!#$%&'*+.^_`|~;-]+), ?Signature=([0-9a-f]{64})$/

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex')
const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest()
const refuse = (status: number, type: string, message: string): Sigv4Refusal => ({ ok: false, status, type, message })

/**
 * Recomputes the signature of a request from its bytes and says who signed it, or refuses the way AWS does: missing or
 * malformed signature, wrong scope, date outside ±5 minutes, unknown key, wrong or expired session token, headers that
 * must be signed and are not, payload hash, signature. Written from the AWS documentation ("Create a signed AWS API
 * request"); shares no code with the signer.
 */
export function verifySigv4(request: Sigv4Request, expected: Sigv4Expectation): Sigv4Verdict {
  const headers = collect(request.headers)
  const authorization = headers.get('authorization')
  if (authorization === undefined) {
    return refuse(403, 'MissingAuthenticationTokenException', 'Missing Authentication Token')
  }
  const parsed = authorization.length === 1 ? AUTHORIZATION.exec(authorization[0] ?? '') : null
  const [, accessKeyId, day, region, service, names, signature] = parsed ?? []
  if (!accessKeyId || !day || !region || !service || !names || !signature) {
    return refuse(400, 'IncompleteSignatureException', 'Authorization header is not a complete SigV4 header')
  }

  const date = only(headers, 'x-amz-date')
  const signedAtMs = date === undefined ? Number.NaN : parseAmzDate(date)
  if (date === undefined || Number.isNaN(signedAtMs)) {
    return refuse(400, 'IncompleteSignatureException', 'X-Amz-Date is missing, repeated or malformed')
  }
  const scopeProblem = checkScope({ day, region, service }, date, expected)
  if (scopeProblem !== undefined) return refuse(403, 'InvalidSignatureException', scopeProblem)
  const windowProblem = checkWindow(signedAtMs, expected.nowMs)
  if (windowProblem !== undefined) return refuse(403, 'InvalidSignatureException', windowProblem)

  const credentials = expected.lookup(accessKeyId)
  const token = only(headers, 'x-amz-security-token')
  if (credentials === undefined || token === undefined || !same(token, credentials.sessionToken)) {
    return refuse(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.')
  }
  if (expected.nowMs >= credentials.expiresAtMs) {
    return refuse(403, 'ExpiredTokenException', 'The security token included in the request is expired')
  }

  const signed = names.split(';')
  const headerProblem = checkSignedHeaders(signed, headers)
  if (headerProblem !== undefined) return refuse(403, 'InvalidSignatureException', headerProblem)
  const payloadHash = sha256(request.body)
  const declared = headers.get('x-amz-content-sha256')
  if (declared !== undefined && (declared.length !== 1 || declared[0] !== payloadHash)) {
    return refuse(400, 'XAmzContentSHA256Mismatch', "The provided 'x-amz-content-sha256' does not match the payload.")
  }

  const canonical = canonicalRequest(request, signed, headers, payloadHash)
  const scope = `${day}/${region}/${service}/aws4_request`
  // Header values and targets are latin1 here, as Node reads them: these are the bytes of the wire.
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(Buffer.from(canonical, 'latin1'))].join('\n')
  const key = [day, region, service, 'aws4_request'].reduce(hmac, Buffer.from(`AWS4${credentials.secretAccessKey}`))
  if (!same(hmac(key, toSign).toString('hex'), signature)) {
    return refuse(
      403,
      'InvalidSignatureException',
      'The request signature we calculated does not match the signature you provided.',
    )
  }
  return { ok: true, credentials }
}

function checkScope(
  scope: { day: string; region: string; service: string },
  date: string,
  expected: Sigv4Expectation,
): string | undefined {
  if (!date.startsWith(scope.day)) return 'Date in Credential scope does not match X-Amz-Date.'
  if (scope.region !== expected.region) return `Credential should be scoped to a valid region, not '${scope.region}'.`
  if (scope.service !== expected.service)
    return `Credential should be scoped to correct service: '${expected.service}'.`
  return undefined
}

function checkWindow(signedAtMs: EpochMs, nowMs: EpochMs): string | undefined {
  const [signedAt, now] = [amzDate(signedAtMs), amzDate(nowMs)]
  if (signedAtMs < nowMs - WINDOW_MS) {
    return `Signature expired: ${signedAt} is now earlier than ${amzDate(nowMs - WINDOW_MS)} (${now} - 5 min.)`
  }
  if (signedAtMs > nowMs + WINDOW_MS) {
    return `Signature not yet current: ${signedAt} is still later than ${amzDate(nowMs + WINDOW_MS)} (${now} + 5 min.)`
  }
  return undefined
}

/** `host`, `content-type` where present and every `x-amz-*` must be signed; what is listed must be there, sorted, once. */
function checkSignedHeaders(
  signed: readonly string[],
  headers: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  const sorted = [...new Set(signed)].toSorted()
  if (sorted.length !== signed.length || sorted.some((name, index) => name !== signed[index])) {
    return 'SignedHeaders is not a sorted list of different names.'
  }
  const missing = signed.find((name) => !headers.has(name))
  if (missing !== undefined) return `Signed header '${missing}' is not in the request.`
  const unsigned = [...headers.keys()].find(
    (name) => (name === 'host' || name === 'content-type' || name.startsWith('x-amz-')) && !signed.includes(name),
  )
  return unsigned === undefined ? undefined : `Header '${unsigned}' must be a 'SignedHeader' in the AWS Authorization.`
}

function canonicalRequest(
  request: Sigv4Request,
  signed: readonly string[],
  headers: ReadonlyMap<string, readonly string[]>,
  payloadHash: string,
): string {
  const queryAt = request.target.indexOf('?')
  const path = queryAt < 0 ? request.target : request.target.slice(0, queryAt)
  const query = queryAt < 0 ? '' : request.target.slice(queryAt + 1)
  const lines = signed.map((name) => `${name}:${(headers.get(name) ?? []).map(squeeze).join(',')}\n`)
  return [
    request.method,
    canonicalPath(path),
    canonicalQuery(query),
    lines.join(''),
    signed.join(';'),
    payloadHash,
  ].join('\n')
}

const squeeze = (value: string) => value.replace(/[ \t]+/g, ' ').replace(/^ | $/g, '')

/** Without empty and dot segments, then each segment encoded once more (every service but S3), as the AWS SDKs do. */
function canonicalPath(path: string): string {
  const kept: string[] = []
  const segments = path.split('/').filter((segment) => segment !== '')
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(encode(Buffer.from(segment, 'latin1')))
  }
  return `/${kept.join('/')}${kept.length > 0 && path.endsWith('/') ? '/' : ''}`
}

/** Names and values decoded (percent only: `+` is a plus), encoded again, sorted by name and then by value. */
function canonicalQuery(query: string): string {
  if (query === '') return ''
  const pairs = query.split('&').filter((part) => part !== '')
  return pairs
    .map((part) => {
      const at = part.indexOf('=')
      const [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
      return { name: encode(decode(name)), value: encode(decode(value)) }
    })
    .toSorted((a, b) => order(a.name, b.name) || order(a.value, b.value))
    .map(({ name, value }) => `${name}=${value}`)
    .join('&')
}

const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function encode(bytes: Uint8Array): string {
  let out = ''
  for (const byte of bytes) {
    const char = String.fromCharCode(byte)
    out += /[A-Za-z0-9\-._~]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return out
}

function decode(text: string): Uint8Array {
  return Buffer.from(
    text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

function collect(flat: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>()
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = (flat[at] ?? '').toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), flat[at + 1] ?? ''])
  }
  return headers
}

function only(headers: ReadonlyMap<string, readonly string[]>, name: string): string | undefined {
  const values = headers.get(name)
  return values?.length === 1 ? values[0] : undefined
}

function same(a: string, b: string): boolean {
  return timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest())
}

function amzDate(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

function parseAmzDate(text: string): number {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text)
  if (parts === null) return Number.NaN
  const [, year, month, day, hour, minute, second] = parts
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(ms) || amzDate(ms) !== text ? Number.NaN : ms
}
