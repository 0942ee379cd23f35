import { Sha256 } from '@aws-crypto/sha256-js'
import { SignatureV4 } from '@smithy/signature-v4'
import { describe, expect, test } from 'vitest'
import { type IssuedCredentials, verifySigv4 } from '../../../lab/index.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const CREDENTIALS: IssuedCredentials = {
  accessKeyId: 'ASIALAB1234567890ABC',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'IQoJb3JpZ2luX2VjEXAMPLE==',
  expiresAtMs: NOW + 900_000,
  roleArn: 'arn:cloud:iam::000000000000:role/lab',
  sessionName: 'alice',
  subject: 'alice',
}
const EXPECTED = {
  region: 'eu-west-1',
  service: 'cloud-mcp',
  nowMs: NOW,
  lookup: (id: string) => (id === CREDENTIALS.accessKeyId ? CREDENTIALS : undefined),
}

interface Signed {
  method: string
  target: string
  headers: string[]
  body: Buffer
}

/** Signed by the official signer of the AWS SDK, which shares nothing with the verifier. */
async function sign(
  options: {
    path?: string
    query?: Record<string, string | string[]>
    rawQuery?: string
    headers?: Record<string, string>
    body?: string
    method?: string
    atMs?: number
    region?: string
    service?: string
    credentials?: Partial<IssuedCredentials>
  } = {},
): Promise<Signed> {
  const { path = '/mcp', query = {}, headers = {}, body = '{"jsonrpc":"2.0"}', method = 'POST', atMs = NOW } = options
  const signer = new SignatureV4({
    credentials: { ...CREDENTIALS, ...options.credentials },
    region: options.region ?? EXPECTED.region,
    service: options.service ?? EXPECTED.service,
    sha256: Sha256,
  })
  const request = {
    method,
    protocol: 'https:',
    hostname: 'mcp.example.com',
    path,
    query,
    body,
    headers: { host: 'mcp.example.com', ...headers },
  }
  const signed = await signer.sign(request, { signingDate: new Date(atMs) })
  return {
    method,
    target: options.rawQuery === undefined ? path : `${path}?${options.rawQuery}`,
    headers: Object.entries(signed.headers).flat(),
    body: Buffer.from(body),
  }
}

const change = (signed: Signed, name: string, value: string | undefined): Signed => {
  const at = signed.headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name)
  return { ...signed, headers: signed.headers.toSpliced(at, 2, ...(value === undefined ? [] : [name, value])) }
}

const authorizationOf = (signed: Signed) => signed.headers[signed.headers.indexOf('authorization') + 1] ?? ''

describe('what the official signer signs is accepted', () => {
  test.each([
    ['a POST', {}],
    ['an empty body', { body: '' }],
    ['a GET', { method: 'GET', body: '' }],
    ['content-type and mcp headers', { headers: { 'content-type': 'application/json', 'mcp-method': 'tools/call' } }],
    ['inner spaces in a header', { headers: { 'x-amz-meta': '  a   b  c ' } }],
    ['an encoded path', { path: '/a%20b/c%2Fd/~x' }],
    ['dot segments', { path: '/a/./b/../c/' }],
    ['empty segments', { path: '//a//b' }],
    ['the root', { path: '/' }],
    ['a query out of order', { query: { b: '2', a: '1' }, rawQuery: 'b=2&a=1' }],
    ['repeated parameters', { query: { a: ['2', '1'] }, rawQuery: 'a=2&a=1' }],
    ['an empty parameter', { query: { a: '' }, rawQuery: 'a' }],
    ['encoded parameters', { query: { 'k é': 'a/b=c d' }, rawQuery: 'k%20%C3%A9=a%2Fb%3Dc%20d' }],
    ['a date five minutes ago', { atMs: NOW - 300_000 }],
    ['a date five minutes ahead', { atMs: NOW + 300_000 }],
  ])('%s', async (_name, options) => {
    const verdict = verifySigv4(await sign(options), EXPECTED)
    expect(verdict).toEqual({ ok: true, credentials: CREDENTIALS })
  })
})

describe('everything else is refused as AWS refuses it', () => {
  const SIGNATURE = 'InvalidSignatureException'
  const cases: readonly [string, number, string, () => Promise<Signed>][] = [
    [
      'no signature',
      403,
      'MissingAuthenticationTokenException',
      async () => change(await sign(), 'authorization', undefined),
    ],
    [
      'a bearer token',
      400,
      'IncompleteSignatureException',
      async () => change(await sign(), 'authorization', 'Bearer abc'),
    ],
    [
      'two signatures',
      400,
      'IncompleteSignatureException',
      async () => {
        const signed = await sign()
        return { ...signed, headers: [...signed.headers, 'Authorization', authorizationOf(signed)] }
      },
    ],
    ['no date', 400, 'IncompleteSignatureException', async () => change(await sign(), 'x-amz-date', undefined)],
    [
      'a date that is none',
      400,
      'IncompleteSignatureException',
      async () => change(await sign(), 'x-amz-date', '20261321T120000Z'),
    ],
    ['a date over five minutes old', 403, SIGNATURE, () => sign({ atMs: NOW - 301_000 })],
    ['a date over five minutes ahead', 403, SIGNATURE, () => sign({ atMs: NOW + 301_000 })],
    ['another region', 403, SIGNATURE, () => sign({ region: 'us-east-1' })],
    ['another service', 403, SIGNATURE, () => sign({ service: 'execute-api' })],
    [
      'another day in the scope',
      403,
      SIGNATURE,
      async () => {
        const signed = await sign()
        return change(signed, 'authorization', authorizationOf(signed).replace('/20261121/', '/20261120/'))
      },
    ],
    [
      'an unknown key',
      403,
      'UnrecognizedClientException',
      () => sign({ credentials: { accessKeyId: 'ASIALAB0000000000000' } }),
    ],
    [
      'no session token',
      403,
      'UnrecognizedClientException',
      async () => change(await sign(), 'x-amz-security-token', undefined),
    ],
    [
      'another session token',
      403,
      'UnrecognizedClientException',
      () => sign({ credentials: { sessionToken: 'other' } }),
    ],
    ['another secret', 403, SIGNATURE, () => sign({ credentials: { secretAccessKey: 'other' } })],
    [
      'another body',
      403,
      SIGNATURE,
      async () => {
        const signed = change(await sign(), 'x-amz-content-sha256', undefined)
        return { ...signed, body: Buffer.from('{}') }
      },
    ],
    [
      'a body that is not the declared one',
      400,
      'XAmzContentSHA256Mismatch',
      async () => ({ ...(await sign()), body: Buffer.from('{}') }),
    ],
    [
      'an unsigned payload',
      400,
      'XAmzContentSHA256Mismatch',
      () => sign({ headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }),
    ],
    ['another method', 403, SIGNATURE, async () => ({ ...(await sign()), method: 'PUT' })],
    ['another path', 403, SIGNATURE, async () => ({ ...(await sign()), target: '/mcp/x' })],
    ['an added query', 403, SIGNATURE, async () => ({ ...(await sign()), target: '/mcp?x=1' })],
    ['another host', 403, SIGNATURE, async () => change(await sign(), 'host', 'other.example.com')],
    [
      'an added x-amz header',
      403,
      SIGNATURE,
      async () => {
        const signed = await sign()
        return { ...signed, headers: [...signed.headers, 'X-Amz-Added', '1'] }
      },
    ],
    [
      'a content-type that is not signed',
      403,
      SIGNATURE,
      async () => {
        const signed = await sign()
        return { ...signed, headers: [...signed.headers, 'Content-Type', 'text/plain'] }
      },
    ],
    [
      'a doubled header that is signed',
      403,
      SIGNATURE,
      async () => {
        const signed = await sign()
        return { ...signed, headers: [...signed.headers, 'Host', 'mcp.example.com'] }
      },
    ],
    [
      'a signed header that was taken away',
      403,
      SIGNATURE,
      async () => change(await sign({ headers: { 'mcp-method': 'ping' } }), 'mcp-method', undefined),
    ],
    [
      'one bit of the signature',
      403,
      SIGNATURE,
      async () => {
        const signed = await sign()
        const text = authorizationOf(signed)
        return change(signed, 'authorization', text.slice(0, -1) + (text.endsWith('0') ? '1' : '0'))
      },
    ],
  ]
  test.each(cases)('%s', async (_name, status, type, make) => {
    expect(verifySigv4(await make(), EXPECTED)).toMatchObject({ ok: false, status, type })
  })

  test('expired credentials', async () => {
    const verdict = verifySigv4(await sign({ atMs: NOW }), {
      ...EXPECTED,
      lookup: () => ({ ...CREDENTIALS, expiresAtMs: NOW }),
    })
    expect(verdict).toMatchObject({ ok: false, status: 403, type: 'ExpiredTokenException' })
  })
})
