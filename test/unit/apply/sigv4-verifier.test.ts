import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { applyAws } from '../../../src/apply/aws.ts'
import { verifySigv4, type IssuedCredentials } from '../../../lab/sigv4-verify.ts'
import {
  credentialOf,
  draftOf,
  keys,
  timeMs,
  unsigned,
  type Keys,
  type Unsigned,
} from '../../support/apply/support/signing.ts'

function verify(
  target: string,
  method: string,
  headers: readonly string[],
  body: Uint8Array,
  theirs: Keys,
  nowMs: number,
) {
  const issued: IssuedCredentials = {
    ...theirs,
    expiresAtMs: nowMs + 3_600_000,
    roleArn: '',
    sessionName: '',
    subject: '',
  }
  const lookup = (id: string) => (id === theirs.accessKeyId ? issued : undefined)
  const { region, service } = theirs
  return verifySigv4({ method, target, headers, body }, { region, service, nowMs, lookup })
}

function sign(request: Unsigned, theirs: Keys, nowMs: number) {
  const draft = draftOf(request, nowMs)
  applyAws(draft, credentialOf(theirs))
  return draft
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

describe('a verifier that shares no code with the signer', () => {
  test('accepts every generated request', () => {
    fc.assert(
      fc.property(unsigned, keys, timeMs, (request, theirs, nowMs) => {
        const { path, method, headers } = sign(request, theirs, nowMs)
        expect(verify(path, method, headers, request.body, theirs, nowMs)).toMatchObject({ ok: true })
      }),
      { numRuns: 1_000, seed: 5 },
    )
  })

  const request: Unsigned = {
    method: 'POST',
    path: '/mcp/a%20b',
    query: 'b=2&a=1&a=0&c',
    headers: [
      ['content-type', 'application/json'],
      ['mcp-session-id', 'abc'],
    ],
    body: Buffer.from('{"jsonrpc":"2.0"}'),
  }
  const theirs: Keys = {
    accessKeyId: `ASIA${ALPHABET.slice(0, 16)}`,
    secretAccessKey: 's',
    sessionToken: 't',
    region: 'eu-central-1',
    service: 'aws-mcp',
  }
  const nowMs = Date.UTC(2027, 0, 1)
  const replaced = (list: readonly string[], name: string, value: string) =>
    list.map((item, index) => (index % 2 === 1 && list[index - 1] === name ? value : item))

  test.each([
    ['the method', (d: ReturnType<typeof sign>) => verify(d.path, 'PUT', d.headers, request.body, theirs, nowMs)],
    ['the path', (d) => verify(d.path.replace('/mcp', '/mcq'), 'POST', d.headers, request.body, theirs, nowMs)],
    ['the query', (d) => verify(d.path.replace('b=2', 'b=3'), 'POST', d.headers, request.body, theirs, nowMs)],
    ['the body', (d) => verify(d.path, 'POST', d.headers, Buffer.from('{}'), theirs, nowMs)],
    [
      'the session',
      (d) => verify(d.path, 'POST', replaced(d.headers, 'mcp-session-id', 'abd'), request.body, theirs, nowMs),
    ],
    [
      'the host',
      (d) => verify(d.path, 'POST', replaced(d.headers, 'host', 'other.example'), request.body, theirs, nowMs),
    ],
    [
      'the token',
      (d) => verify(d.path, 'POST', replaced(d.headers, 'x-amz-security-token', 'u'), request.body, theirs, nowMs),
    ],
    ['the day after', (d) => verify(d.path, 'POST', d.headers, request.body, theirs, nowMs + 86_400_000)],
    [
      'another region',
      (d) => verify(d.path, 'POST', d.headers, request.body, { ...theirs, region: 'us-east-1' }, nowMs),
    ],
    [
      'another secret',
      (d) => verify(d.path, 'POST', d.headers, request.body, { ...theirs, secretAccessKey: 'x' }, nowMs),
    ],
  ] satisfies [string, (draft: ReturnType<typeof sign>) => { ok: boolean }][])(
    'refuses a change of %s',
    (_what, attempt) => {
      const draft = sign(request, theirs, nowMs)
      expect(verify(draft.path, 'POST', draft.headers, request.body, theirs, nowMs).ok).toBe(true)
      expect(attempt(draft).ok).toBe(false)
    },
  )

  test('a hop may change what is not signed', () => {
    const draft = sign(request, theirs, nowMs)
    const changed = [...draft.headers, 'x-forwarded-for', '1.2.3.4', 'via', '1.1 hop', 'accept-encoding', 'gzip']
    expect(verify(draft.path, 'POST', changed, request.body, theirs, nowMs).ok).toBe(true)
  })
})
