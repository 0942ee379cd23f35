import * as fc from 'fast-check'
import type { Draft } from '../../../../src/apply/applier.ts'
import { Secret, type AwsCredential, type Body } from '../../../../src/core/index.ts'

/** A request before it is signed. */
export interface Unsigned {
  readonly method: string
  readonly path: string
  /** Raw query without `?`. */
  readonly query: string
  /** Name and value; names at most once. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
}

export interface Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  readonly region: string
  readonly service: string
}

const percent = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

const oneOf = (characters: string) => fc.constantFrom(...characters.split(''))
const word = fc.string({ unit: oneOf('abzAZ09-._~'), maxLength: 8 })
const text = fc.oneof(word, fc.string({ unit: 'grapheme', maxLength: 6 }))
/** A segment as it may be on the wire: unreserved, escaped, or one of the characters that need no escape in a path. */
const segment = fc.oneof(word, text.map(percent), fc.string({ unit: oneOf(":@!$'()*+,;=&ab"), maxLength: 5 }))
export const path = fc.array(segment, { maxLength: 6 }).map((segments) => `/${segments.join('/')}`)

/** Parameters with repeated and empty names and values, as they are before they are escaped. */
export const parameters = fc.array(fc.tuple(fc.oneof(word, text), text), { maxLength: 6 })
export const rawQuery = (pairs: readonly (readonly [string, string])[]) =>
  pairs.map(([name, value]) => `${percent(name)}=${percent(value)}`).join('&')

const headerValue = fc.string({ unit: oneOf('abcXYZ0189 ,;:=/+"\t'), maxLength: 20 })
const headerName = fc.constantFrom(
  'Content-Type',
  'Mcp-Session-Id',
  'mcp-protocol-version',
  'MCP-Name',
  'X-Amz-Target',
  'accept',
  'user-agent',
  'X-Other',
)
export const headers = fc.uniqueArray(fc.tuple(headerName, headerValue), {
  maxLength: 6,
  selector: ([name]) => name.toLowerCase(),
})

export const body = fc.oneof(
  fc.constant(Buffer.alloc(0)),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
)

export const unsigned: fc.Arbitrary<Unsigned> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT'),
  path,
  query: parameters.map(rawQuery),
  headers,
  body,
})

export const keys: fc.Arbitrary<Keys> = fc.record({
  accessKeyId: fc.stringMatching(/^ASIA[A-Z0-9]{16}$/),
  secretAccessKey: fc.stringMatching(/^[A-Za-z0-9/+]{40}$/),
  sessionToken: fc.stringMatching(/^[A-Za-z0-9/+=]{20,60}$/),
  region: fc.constantFrom('eu-central-1', 'us-gov-west-1', 'cn-north-1'),
  service: fc.constantFrom('aws-mcp', 'cloud-mcp', 'bedrock-agentcore'),
})

/** Times around the days on which a date can go wrong. */
export const timeMs = fc.oneof(
  fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2038, 0, 19) }),
  fc.constantFrom(Date.UTC(2027, 11, 31, 23, 59, 59, 999), Date.UTC(2028, 1, 29), Date.UTC(2028, 0, 1)),
)

export function credentialOf({ secretAccessKey, sessionToken, ...rest }: Keys): AwsCredential {
  return {
    kind: 'aws',
    ...rest,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: new Secret(sessionToken),
    signing: { day: '', key: undefined },
  }
}

/** The draft of a request as the apply stage makes it. */
export function draftOf(request: Unsigned, nowMs: number, kind: Body['kind'] = 'kept'): Draft {
  const { method, path, query, headers, body } = request
  return {
    method,
    path: query === '' ? path : `${path}?${query}`,
    host: 'backend.example',
    headers: ['host', 'backend.example', ...headers.flat()],
    body: kind === 'none' ? { kind } : { kind: 'kept', bytes: body },
    nowMs,
  }
}

/** The last value of a header in a flat list. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findLastIndex((value, index) => index % 2 === 0 && value.toLowerCase() === name)
  return at < 0 ? undefined : headers[at + 1]
}
