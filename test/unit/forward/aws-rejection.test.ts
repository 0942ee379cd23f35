import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { type AwsCredential, Secret } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { startFront, type FrontOptions } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const credential: AwsCredential = {
  kind: 'aws',
  accessKeyId: 'id',
  secretAccessKey: new Secret('key'),
  sessionToken: new Secret('token'),
  region: 'eu-west-1',
  service: 'cloud-mcp',
  signing: { day: '', key: undefined },
}
const DATE = 'Sat, 21 Nov 2026 10:00:00 GMT'
const SERVER_TIME = Date.parse(DATE)

interface Answer {
  status: number
  headers?: Record<string, string>
  body?: string | (string | Buffer)[]
}
const seenBy = async (
  answer: Answer,
  options: Partial<FrontOptions> = {},
): Promise<{ again: unknown; status: number; body: string }> => {
  const origin = await sockets.http((_request, response) => {
    response.writeHead(answer.status, { date: DATE, ...answer.headers })
    const parts = typeof answer.body === 'string' ? [answer.body] : (answer.body ?? [])
    const next = (): void => {
      const part = parts.shift()
      if (part === undefined) return void response.end()
      response.write(part)
      setTimeout(next, 2)
    }
    next()
  })
  const front = await startFront(sockets, { origin, credential, ...options })
  const seen = await fetch(front.url)
  const again: unknown = JSON.parse(seen.headers.get('again') ?? 'null')
  return { again, status: seen.status, body: await seen.text() }
}

const rejected = (status: number) => ({ reason: 'credential_rejected', status })
const skewed = (status: number) => ({ reason: 'clock_skew', status, serverTimeMs: SERVER_TIME })

describe('a signed request that is refused', () => {
  it.each([
    [403, 'ExpiredTokenException', rejected(403)],
    [400, 'ExpiredTokenException:http://internal.amazon.com/coral/', rejected(400)],
    [400, 'ExpiredToken', rejected(400)],
    [400, 'UnrecognizedClientException', rejected(400)],
    [403, 'InvalidClientTokenId', rejected(403)],
    [403, 'RequestTimeTooSkewed', skewed(403)],
    [403, 'AccessDeniedException', null],
    [400, 'ValidationException', null],
    [500, 'ExpiredTokenException', null],
    [404, 'ExpiredToken', null],
  ])('with %i and x-amzn-errortype %s', async (status, type, expected) => {
    const seen = await seenBy({ status, headers: { 'x-amzn-errortype': type }, body: 'text' })
    expect(seen.again).toEqual(expected)
    if (expected === null) expect([seen.status, seen.body]).toEqual([status, 'text'])
  })

  it.each([
    [400, '{"__type":"com.amazon.coral#ExpiredTokenException","message":"expired"}', rejected(400)],
    [403, '<Error><Code>ExpiredToken</Code></Error>', rejected(403)],
    [403, '<Error><Code>InvalidAccessKeyId</Code></Error>', rejected(403)],
    [403, '{"message":"The security token included in the request is invalid."}', rejected(403)],
    [403, '{"message":"The security token included in the request is expired"}', rejected(403)],
    [403, '<Error><Code>RequestTimeTooSkewed</Code></Error>', skewed(403)],
    [403, '{"message":"Signature expired: 20261121T090000Z is now earlier than 20261121T095500Z"}', skewed(403)],
    [403, '{"__type":"InvalidSignatureException","message":"Signature not yet current: 2026"}', skewed(403)],
    [
      403,
      '{"__type":"InvalidSignatureException","message":"The request signature we calculated does not match"}',
      null,
    ],
    [403, '{"message":"User is not authorized"}', null],
    [400, '', null],
  ])('with %i and the body %s', async (status, body, expected) => {
    const seen = await seenBy({ status, body })
    expect(seen.again).toEqual(expected)
    if (expected === null) expect([seen.status, seen.body]).toEqual([status, body])
  })

  it('is recognised when the name arrives in pieces, within the first 8 KiB only', async () => {
    expect((await seenBy({ status: 403, body: ['{"__type":"Expired', 'TokenException"}'] })).again).toEqual(
      rejected(403),
    )
    const late = `${'x'.repeat(8192)}ExpiredToken`
    const seen = await seenBy({ status: 403, body: late })
    expect([seen.again, seen.body]).toEqual([null, late])
  })

  it('with a named signature reads the text, which reports the skew', async () => {
    const headers = { 'x-amzn-errortype': 'InvalidSignatureException' }
    expect((await seenBy({ status: 403, headers, body: 'Signature expired: 2026' })).again).toEqual(skewed(403))
  })

  it.each([
    ['AccessDeniedException', 'Signature expired: 2026', skewed(403)],
    ['AccessDeniedException', '{"Message":"The security token included in the request is expired"}', rejected(403)],
    ['MissingAuthenticationTokenException', '<Code>RequestTimeTooSkewed</Code>', skewed(403)],
  ])('with the name %s in the header is evaluated by its body too: %s', async (type, body, expected) => {
    expect((await seenBy({ status: 403, headers: { 'x-amzn-errortype': type }, body })).again).toEqual(expected)
  })

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)('is read through the content coding %s', async (coding, compress) => {
    const body = compress(`{"__type":"ExpiredTokenException","message":"${'x'.repeat(20_000)}"}`)
    const headers = { 'content-encoding': coding }
    expect((await seenBy({ status: 403, headers, body: [body] })).again).toEqual(rejected(403))
    const about = compress('{"message":"User is not authorized"}')
    const seen = await seenBy({ status: 403, headers, body: [about] })
    expect([seen.again, seen.body]).toEqual([null, '{"message":"User is not authorized"}'])
  })

  it('passes as it came when its content coding is not what it says', async () => {
    const seen = await seenBy({ status: 403, headers: { 'content-encoding': 'x-unknown' }, body: 'text' })
    expect([seen.again, seen.body]).toEqual([null, 'text'])
  })

  it('because of a skewed clock passes when the backend does not say what time it is', async () => {
    const headers = { 'x-amzn-errortype': 'RequestTimeTooSkewed', date: 'soon' }
    const seen = await seenBy({ status: 403, headers, body: 'text' })
    expect([seen.again, seen.body]).toEqual([null, 'text'])
  })

  it('passes whole when it goes on long after what was looked at', async () => {
    const body = Array.from({ length: 20 }, (_unused, index) => String(index).repeat(4000))
    const seen = await seenBy({ status: 403, body: [...body] })
    expect(seen.body).toBe(body.join(''))
  })

  it('is not looked at in the last attempt, nor without a signature', async () => {
    const answer = { status: 403, headers: { 'x-amzn-errortype': 'ExpiredTokenException' }, body: 'ExpiredToken' }
    expect((await seenBy(answer, { final: true })).body).toBe('ExpiredToken')
    expect((await seenBy(answer, { credential: { kind: 'none' } })).body).toBe('ExpiredToken')
  })

  it('with a body that breaks off while it is looked at is a malformed answer', async () => {
    const origin = await sockets.tcp((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 100\r\n\r\nhalf'))
    })
    const front = await startFront(sockets, { origin, credential })
    expect((await fetch(front.url)).headers.get('reason')).toBe('backend_error')
  })
})
