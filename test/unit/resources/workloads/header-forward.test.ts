import { describe, expect, test } from 'vitest'
import { forwardedNames, forwardedSecrets } from '../../../../src/resources/index.ts'
import { headerForward } from '../../../../src/resources/workloads/header-forward.ts'

const ref = { name: 'tenant', key: 'api-key' }
const problems = (value: unknown): string[] =>
  (headerForward().safeParse(value).error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`)

describe('headerForward', () => {
  test('has headers with their values, and such whose values are secrets', () => {
    const parsed = headerForward().parse({
      addPlaintextHeaders: { 'X-Tenant': '42' },
      addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: ref }],
    })
    expect(forwardedNames(parsed)).toEqual(['x-tenant', 'x-api-key'])
    expect(forwardedSecrets(parsed)).toEqual([
      { path: ['headerForward', 'addHeadersFromSecret', 0, 'valueSecretRef'], value: ref, holds: 'header value' },
    ])
    expect(forwardedNames(headerForward().parse({}))).toEqual([])
    expect(forwardedNames(undefined)).toEqual([])
  })

  test.each(['Host', 'content-length', 'Transfer_Encoding', 'Connection', 'Proxy-Authorization', 'Mcp-Session-Id'])(
    'refuses %s, as headerInjection does',
    (name) => {
      const refusal = 'expected a header that is not framing, hop-by-hop, Host or Mcp-*'
      expect(problems({ addPlaintextHeaders: { [name]: 'a' } })).toEqual([`addPlaintextHeaders.${name}: ${refusal}`])
      expect(problems({ addHeadersFromSecret: [{ headerName: name, valueSecretRef: ref }] })).toEqual([
        `addHeadersFromSecret.0.headerName: ${refusal}`,
      ])
    },
  )

  test.each([
    ['a second line', { 'X-A': 'a\r\nX-Evil: 1' }],
    ['a control character', { 'X-A': 'a\u0000' }],
    ['more than 8 KiB', { 'X-A': 'ä'.repeat(4097) }],
    ['no value', { 'X-A': '' }],
    ['a name that is none', { 'X A': 'a' }],
    ['too many', Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`X-${index}`, 'a']))],
  ])('refuses %s', (_, addPlaintextHeaders) => {
    expect(problems({ addPlaintextHeaders })).toHaveLength(1)
  })

  test.each([
    { addPlaintextHeaders: { 'X-Key': 'a', x_key: 'b' } },
    { addPlaintextHeaders: { 'X-Key': 'a' }, addHeadersFromSecret: [{ headerName: 'x-key', valueSecretRef: ref }] },
  ])('refuses a header that is there twice, however it is spelled: %j', (value) => {
    expect(problems(value)).toEqual([': duplicate header, expected each once, however it is spelled'])
  })

  test('rejects an unknown field', () => {
    expect(problems({ addHeaderFromSecret: [] })).toHaveLength(1)
  })
})
