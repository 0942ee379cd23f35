import { describe, expect, test } from 'vitest'
import { applyAws } from '../../../src/apply/aws.ts'
import { amzDate, EMPTY_HASH } from '../../../src/apply/sigv4.ts'
import type { Body } from '../../../src/core/index.ts'
import { credentialOf, draftOf, headerOf, type Keys } from '../../support/apply/support/signing.ts'

const KEYS: Keys = {
  accessKeyId: 'ASIAABCDEFGHIJKLMNOP',
  secretAccessKey: 'secret',
  sessionToken: 'session',
  region: 'eu-central-1',
  service: 'aws-mcp',
}
const NOW_MS = Date.UTC(2027, 4, 6, 7, 8, 9, 987)
const request = { method: 'POST', path: '/mcp', query: '', headers: [] as [string, string][], body: Buffer.from('abc') }

function signed(headers: [string, string][], body?: Body, nowMs = NOW_MS, credential = credentialOf(KEYS)) {
  const draft = { ...draftOf({ ...request, headers }, nowMs), ...(body === undefined ? {} : { body }) }
  applyAws(draft, credential)
  return draft.headers
}

describe('signing a draft', () => {
  test('adds date, token, payload hash and authorization, and nothing else', () => {
    const headers = signed([['accept', 'application/json']])
    expect(headers.slice(0, 4)).toEqual(['host', 'backend.example', 'accept', 'application/json'])
    expect(headers.filter((_, index) => index % 2 === 0)).toEqual([
      'host',
      'accept',
      'x-amz-date',
      'x-amz-security-token',
      'x-amz-content-sha256',
      'authorization',
    ])
    expect(headerOf(headers, 'x-amz-date')).toBe('20270506T070809Z')
    expect(headerOf(headers, 'x-amz-security-token')).toBe('session')
    expect(headerOf(headers, 'x-amz-content-sha256')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    )
    expect(headerOf(headers, 'authorization')).toMatch(
      /^AWS4-HMAC-SHA256 Credential=ASIAABCDEFGHIJKLMNOP\/20270506\/eu-central-1\/aws-mcp\/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
    )
  })

  test('a plus in the query is sent and signed as the space that it means; one in the path stays', () => {
    const draft = { ...draftOf({ ...request, path: '/a+b', headers: [] }, NOW_MS), path: '/a+b?q=c+d%2Be&f+=g' }
    applyAws(draft, credentialOf(KEYS))
    expect(draft.path).toBe('/a+b?q=c%20d%2Be&f%20=g')
    const spelled = { ...draftOf({ ...request, path: '/a+b', headers: [] }, NOW_MS), path: draft.path }
    applyAws(spelled, credentialOf(KEYS))
    expect(headerOf(draft.headers, 'authorization')).toBe(headerOf(spelled.headers, 'authorization'))
  })

  test.each([
    ['/b/a b', '/b/a%20b'],
    ["/b/o'clock(1)!*", '/b/o%27clock%281%29%21%2A'],
    ['/b/a%2fb/%7e', '/b/a%2Fb/~'],
    ['/b//x/../y', '/b//x/../y'],
    ['/b?acl&prefix=a/b&x-id=%c3%bc&a=b=c', '/b?acl&prefix=a%2Fb&x-id=%C3%BC&a=b%3Dc'],
    ['/b?q=a+b', '/b?q=a%20b'],
  ])('what is sent to S3 is what is signed: %s goes out as %s', (path, sent) => {
    const credential = credentialOf({ ...KEYS, service: 's3' })
    const draft = { ...draftOf({ ...request, headers: [] }, NOW_MS), path }
    applyAws(draft, credential)
    expect(draft.path).toBe(sent)
    const spelled = { ...draftOf({ ...request, headers: [] }, NOW_MS), path: sent }
    applyAws(spelled, credential)
    expect(headerOf(draft.headers, 'authorization')).toBe(headerOf(spelled.headers, 'authorization'))
    const other = { ...draftOf({ ...request, headers: [] }, NOW_MS), path: "/b/o'clock" }
    applyAws(other, credentialOf(KEYS))
    expect(other.path).toBe("/b/o'clock")
  })

  test.each([
    ['no body', { kind: 'none' } as const],
    ['an empty body', { kind: 'kept', bytes: Buffer.alloc(0) } as const],
  ])('%s has the hash of nothing', (_what, body) => {
    expect(headerOf(signed([], body), 'x-amz-content-sha256')).toBe(EMPTY_HASH)
  })

  test('a body that flows is never signed as unsigned', () => {
    const body = { kind: 'stream', stream: undefined as never, length: 3 } as const
    expect(() => signed([], body)).toThrow(expect.objectContaining({ code: 'internal_error' }))
  })

  test('copies of what it sets go away, in any case', () => {
    const headers = signed([
      ['Authorization', 'Bearer caller'],
      ['X-Amz-Date', 'x'],
      ['X-AMZ-Security-Token', 'theirs'],
      ['x-amz-content-sha256', 'UNSIGNED-PAYLOAD'],
    ])
    expect(headers.join('\n')).not.toMatch(/Bearer caller|theirs|UNSIGNED-PAYLOAD/)
    expect(headers.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization')).toHaveLength(1)
  })

  test('the same draft gives the same signature, a second later another', () => {
    expect(headerOf(signed([]), 'authorization')).toBe(headerOf(signed([]), 'authorization'))
    expect(headerOf(signed([], undefined, NOW_MS + 1_000), 'authorization')).not.toBe(
      headerOf(signed([]), 'authorization'),
    )
  })
})

describe('the signing key', () => {
  test('is kept with its credential for the day', () => {
    const credential = credentialOf(KEYS)
    signed([], undefined, NOW_MS, credential)
    const { key, day } = credential.signing
    expect(day).toBe('20270506')
    signed([], undefined, NOW_MS + 3_600_000, credential)
    expect(credential.signing.key).toBe(key)
  })

  test('changes with the day, so that a credential lives through midnight', () => {
    const credential = credentialOf(KEYS)
    const before = signed([], undefined, NOW_MS, credential)
    const after = signed([], undefined, NOW_MS + 86_400_000, credential)
    expect(credential.signing.day).toBe('20270507')
    expect(headerOf(after, 'authorization')).toBe(headerOf(signed([], undefined, NOW_MS + 86_400_000), 'authorization'))
    expect(headerOf(signed([], undefined, NOW_MS, credential), 'authorization')).toBe(headerOf(before, 'authorization'))
  })
})

test.each([
  [0, '19700101T000000Z'],
  [Date.UTC(2028, 1, 29, 23, 59, 59, 999), '20280229T235959Z'],
  [Date.UTC(2027, 0, 1), '20270101T000000Z'],
])('the date of %i is %s', (ms, date) => {
  expect(amzDate(ms)).toBe(date)
})
