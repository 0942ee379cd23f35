import { describe, expect, it } from 'vitest'
import { GATEWAY_HEADERS } from '../../../src/core/index.ts'
import { createHeaderPolicy } from '../../../src/http/index.ts'

/** A name of each row, in the spelling of the table. */
const NAMES = GATEWAY_HEADERS.map(({ name, kind }) => ({ name: name.replace('*', 'anything'), kind }))
const spellings = (name: string): string[] => [name, name.toUpperCase(), name.replaceAll('-', '_')]
const TOKENS = NAMES.filter(({ kind }) => kind === 'token').map(({ name }) => name)
const IDENTITIES = NAMES.filter(({ kind }) => kind === 'identity').map(({ name }) => name)
/** As gateways write them: none may be lost from the table. */
const WRITTEN = [
  ['Cf-Access-Jwt-Assertion', 'X-Goog-Iap-Jwt-Assertion', 'X-Ms-Token-Aad-Access-Token', 'X-Pomerium-Jwt-Assertion'],
  ['X-Id-Token', 'X-Access-Token', 'X-Amzn-Oidc-Data', 'X-Forwarded-Access-Token', 'X-Auth-Request-Access-Token'],
  ['Remote-User', 'X-Remote-User', 'X-WebAuth-User', 'X-Ms-Client-Principal', 'X-Ms-Client-Principal-Name'],
  ['X-Goog-Authenticated-User-Email', 'X-Vouch-User', 'Tailscale-User-Login', 'Ssl-Client-Cert', 'X-Client-Cert'],
  ['X-Userinfo', 'Impersonate-User', 'Impersonate-Extra-scopes', 'X-Consumer-Username', 'X-Forwarded-User'],
].flat()

describe('what other gateways say about a caller', () => {
  it.each([...TOKENS, ...IDENTITIES, ...WRITTEN])('%s reaches no backend, however it is spelled', (name) => {
    const lines = spellings(name).flatMap((spelling) => [spelling, 'admin'])
    expect(createHeaderPolicy([])([...lines, 'X-Other', 'o']).headers).toEqual(['x-other', 'o'])
  })

  it.each(IDENTITIES)('%s passes where the route names it, and only as it is named', (name) => {
    const policy = createHeaderPolicy([], [name.toUpperCase()])
    expect(policy([name, 'alice', name.replaceAll('-', '_'), 'admin', 'remote-other', 'x']).headers).toEqual(
      // A single word has no other spelling.
      name.includes('-') ? [name, 'alice', 'remote-other', 'x'] : [name, 'alice', name, 'admin', 'remote-other', 'x'],
    )
  })

  it.each(TOKENS)('%s passes on no account', (name) => {
    expect(createHeaderPolicy([], [name])([name, 'token']).headers).toEqual([])
  })

  it('what a route sets itself stays out although the route names it', () => {
    expect(createHeaderPolicy(['remote-user'], ['Remote-User'])(['Remote-User', 'admin']).headers).toEqual([])
  })

  it.each(['X-User-Agent', 'Remote', 'X-Username-Hint', 'Oidc', 'X-Request-Id'])('%s is not one of them', (name) => {
    expect(createHeaderPolicy([])([name, 'v']).headers).toEqual([name.toLowerCase(), 'v'])
  })

  it('each row has a reason, and no name stands twice', () => {
    expect(GATEWAY_HEADERS.every(({ why }) => why.length > 10)).toBe(true)
    expect(new Set(GATEWAY_HEADERS.map(({ name }) => name)).size).toBe(GATEWAY_HEADERS.length)
  })
})

describe('X-Amz-* headers', () => {
  it.each(['X-Amz-Copy-Source', 'X-Amz-Meta-Owner', 'x-amz-tagging', 'X-Amz-Target', 'X-Amz-Server-Side-Encryption'])(
    'that carry meaning pass: %s, but not in another spelling, which would not be signed',
    (name) => {
      expect(createHeaderPolicy([])([name, 'v', name.replaceAll('-', '_'), 'w']).headers).toEqual([
        name.toLowerCase(),
        'v',
      ])
    },
  )

  it.each(
    [
      ['X-Amz-Date', 'X-Amz-Security-Token', 'X-Amz-Content-Sha256', 'X-Amz-Algorithm', 'X-Amz-Credential'],
      ['X-Amz-Signature', 'X-Amz-SignedHeaders', 'X-Amz-Expires', 'X-Amz-S3session-Token', 'X-Amz-Region-Set'],
    ].flat(),
  )('that sign or identify a user do not: %s', (name) => {
    expect(createHeaderPolicy([], [name])([name, 'v', name.replaceAll('-', '_'), 'w']).headers).toEqual([])
  })
})
