import type { Readable } from 'node:stream'
import { fieldNameOf, isFieldValue, isToken } from './fields.ts'
import { WireError } from './wire-error.ts'

/** A request as it is to stand on the wire. */
export interface WireRequest {
  readonly method: string
  /** Origin-form: path and query. */
  readonly path: string
  /** Flat (name, value, …), without framing: that is made of the body. `content-length` may stand there and must be right. */
  readonly headers: readonly string[]
  readonly body: Buffer | Readable | null
  /** Asks for this protocol instead (RFC 9110 §7.8). */
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
  /** Up to and with the empty line. */
  readonly head: string
  readonly body: BodyPlan
  readonly isHead: boolean
  readonly isUpgrade: boolean
  /** The connection may be used again after the answer. */
  readonly keeps: boolean
}

/** To whom requests are written. */
export interface RequestTarget {
  /** `host[:port]`, for `Host` where a request has none. */
  readonly authority: string
  /** The origin before each path, for a proxy that forwards them (RFC 9112 §3.2.2). Default: none. */
  readonly absolute?: string | undefined
  /** Header lines of each request beside its own, flat. */
  readonly headers?: readonly string[]
}

const NO_BODY: BodyPlan = { kind: 'none' }
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/
const LENGTH = /^\d{1,15}$/

/** Those of which a server expects a body, so that its absence is said (RFC 9110 §8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** What frames a message or concerns one connection is written here and by nobody else. */
const OURS: ReadonlySet<string> = new Set([
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
 * Writes the head of a request. Throws `WireError` WIRE_REQUEST for one that two parties could read differently: a method
 * or a name that is no token, a target that is not in origin-form, a value with control characters, two hosts, a length that
 * is not that of the body, framing among the headers.
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
  // Servers that send a body with an answer to HEAD, or do not read that of a GET, would be out of step with us.
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
    if (name === undefined || OURS.has(name)) throw refused('header')
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
