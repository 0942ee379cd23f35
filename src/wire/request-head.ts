import type { Readable } from 'node:stream'
import { fieldNameOf, isFieldValue, isToken } from './fields.ts'
import { WireError } from './wire-error.ts'

/** A request to be written. */
export interface WireRequest {
  readonly method: string
  /** Origin-form: path and query. */
  readonly path: string
  /**
   * Flat (name, value, …), without framing, which is derived from the body. `content-length` is allowed and must be
   * correct.
   */
  readonly headers: readonly string[]
  readonly body: Buffer | Readable | null
  /** Requests this protocol instead (RFC 9110 §7.8). */
  readonly upgrade?: string | undefined
}

/** How the body of a request is sent. */
export type BodyPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'length'; readonly stream: Readable; readonly length: number }
  | { readonly kind: 'chunked'; readonly stream: Readable }

/** A request that can be written. */
export interface WrittenRequest {
  /** Including the final empty line. */
  readonly head: string
  readonly body: BodyPlan
  readonly isHead: boolean
  readonly isUpgrade: boolean
  /** The connection may be reused after the response. */
  readonly keeps: boolean
}

/** The destination of requests. */
export interface RequestTarget {
  /** `host[:port]`, for requests without `Host`. */
  readonly authority: string
  /** The origin before each path, for a forwarding proxy (RFC 9112 §3.2.2). Default: none. */
  readonly absolute?: string | undefined
  /** Additional header lines of each request, flat. */
  readonly headers?: readonly string[]
}

const NO_BODY: BodyPlan = { kind: 'none' }
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/
const LENGTH = /^\d{1,15}$/

/** Methods with an expected body, so that its absence is declared (RFC 9110 §8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** Framing and connection headers, which only this module writes. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'http2-settings',
  'te',
  'trailer',
  'expect',
])

/**
 * Writes the head of a request. Throws `WireError` WIRE_REQUEST for an ambiguous one: a method or name that is not a
 * token, a target not in origin-form, a value with control characters, duplicate `Host`, a length that differs from the
 * body, framing headers.
 */
export function writeRequest(
  request: WireRequest,
  { authority, absolute = '', headers: more }: RequestTarget,
): WrittenRequest {
  const { method, path, headers, upgrade } = request
  if (!isToken(method) || method === 'CONNECT') throw refused('method')
  if (!TARGET.test(path)) throw refused('target')
  const isHead = method === 'HEAD'
  const isPayload = WITH_BODY.has(method)
  const { lines, length, hasHost } = writeFields(headers)
  const body = planOf(request.body, length)
  // Servers that send a body with a response to HEAD, or do not read that of a GET, would get out of sync.
  const keeps = upgrade === undefined && !isHead && (body === NO_BODY || isPayload)
  let head = `${method} ${absolute}${path} HTTP/1.1\r\n`
  if (!hasHost) head += `host: ${authority}\r\n`
  if (upgrade === undefined) head += keeps ? 'connection: keep-alive\r\n' : 'connection: close\r\n'
  else head += `connection: upgrade\r\nupgrade: ${checkedValue(upgrade)}\r\n`
  head += lines
  if (more !== undefined) head += writeFields(more).lines
  if (body.kind === 'chunked') head += 'transfer-encoding: chunked\r\n\r\n'
  else if (body.kind === 'none') head += isPayload ? 'content-length: 0\r\n\r\n' : '\r\n'
  else head += `content-length: ${body.kind === 'bytes' ? body.bytes.length : body.length}\r\n\r\n`
  return { head, body, isHead, isUpgrade: upgrade !== undefined, keeps }
}

function writeFields(headers: readonly string[]): { lines: string; length: number | undefined; hasHost: boolean } {
  let lines = ''
  let length: number | undefined
  let hasHost = false
  for (let index = 0; index < headers.length; index += 2) {
    const raw = headers[index] ?? ''
    const value = checkedValue(headers[index + 1])
    const name = fieldNameOf(raw)
    if (name === undefined || OWN_HEADERS.has(name)) throw refused('header')
    if (name === 'content-length') {
      if (length !== undefined || !LENGTH.test(value)) throw refused('length')
      length = Number(value)
      continue
    }
    if (name === 'host') {
      if (hasHost) throw refused('host')
      hasHost = true
    }
    lines += `${raw}: ${value}\r\n`
  }
  return { lines, length, hasHost }
}

function planOf(body: Buffer | Readable | null, length: number | undefined): BodyPlan {
  if (body === null || (Buffer.isBuffer(body) && body.length === 0)) {
    if (length !== undefined && length !== 0) throw refused('length')
    return NO_BODY
  }
  if (!Buffer.isBuffer(body))
    return length === undefined ? { kind: 'chunked', stream: body } : { kind: 'length', stream: body, length }
  if (length !== undefined && length !== body.length) throw refused('length')
  return { kind: 'bytes', bytes: body }
}

function checkedValue(value: string | undefined): string {
  if (value === undefined || !isFieldValue(value)) throw refused('header value')
  return value
}

const refused = (what: string): WireError => new WireError('WIRE_REQUEST', `a request with a bad ${what}`)
