import { describe, expect, it } from 'vitest'
import { Failure, FAILURES, type FailureCode } from '../../../src/core/index.ts'
import {
  challengeFor,
  mcpFailureBody,
  metadataPath,
  metadataUrl,
  oauthFailureBody,
  otherScheme,
  parseBearer,
  registryFailureBody,
  renderChallenge,
} from '../../../src/http/index.ts'

describe('otherScheme', () => {
  it.each<[string, string | undefined]>([
    ['Basic dXNlcjpwYXNz', 'the Authorization header has the scheme Basic, expected Bearer'],
    ['basic', 'the Authorization header has the scheme Basic, expected Bearer'],
    ['DPoP abc', 'the Authorization header has the scheme DPoP, expected Bearer'],
    ['eyJhbGciOiJSUzI1NiJ9.e30.c2ln', 'the Authorization header has no scheme, expected Bearer and the token'],
    ['s3cret pass', 'the Authorization header has another scheme than Bearer'],
    ['', undefined],
    ['  ', undefined],
  ])('%j: %s', (value, said) => expect(otherScheme([value])).toBe(said))

  it('of no header is nothing', () => expect(otherScheme([])).toBeUndefined())
})

describe('parseBearer', () => {
  it.each([
    [[], undefined],
    [[''], undefined],
    [[' '], undefined],
    [['Basic abc'], undefined],
    [['Bearerabc'], undefined],
    [['x'.repeat(100_000)], undefined],
    [['Bearer abc'], 'abc'],
    [['bEaReR   a-._~+/9=='], 'a-._~+/9=='],
    [[`Bearer ${'a'.repeat(16_384)}`], 'a'.repeat(16_384)],
  ])('reads %j', (values, token) => {
    expect(parseBearer(values)).toBe(token)
  })

  it.each([
    [['Bearer'], 'invalid_token'],
    [['Bearer '], 'invalid_token'],
    [['Bearer a b'], 'invalid_token'],
    [['Bearer a,b'], 'invalid_token'],
    [['Bearer =a'], 'invalid_token'],
    [['Bearer ä'], 'invalid_token'],
    [['Bearer\tabc'], 'invalid_token'],
    [[`Bearer ${'a'.repeat(16_385)}`], 'invalid_token'],
    [[`Bearer ${' '.repeat(100_000)}a`], 'invalid_token'],
    [['Bearer a', 'Bearer a'], 'bad_request'],
  ])('refuses %j with %s', (values, code) => {
    expect(() => parseBearer(values)).toThrow(expect.objectContaining({ code }))
  })
})

describe('challenges', () => {
  it('renders parameters in a fixed order, quoted', () => {
    expect(
      renderChallenge({
        realm: 'a "b" \\c\r\nä',
        error: 'e',
        errorDescription: 'd',
        scope: 's t',
        resourceMetadata: 'u',
      }),
    ).toBe('Bearer realm="a \\"b\\" \\\\c", error="e", error_description="d", scope="s t", resource_metadata="u"')
    expect(renderChallenge({ realm: 'r', scope: '' })).toBe('Bearer realm="r"')
  })

  const resource = { realm: 'r', resourceMetadata: 'https://m', requiredScopes: ['read'] }

  it.each<[FailureCode, string | undefined]>([
    ['missing_token', undefined],
    ['invalid_token', 'invalid_token'],
    ['expired_token', 'invalid_token'],
    ['no_session', 'invalid_token'],
  ])('answers %s with error %s', (code, error) => {
    const challenge = challengeFor(new Failure(code), resource)
    expect(challenge).toContain('resource_metadata="https://m"')
    expect(challenge).toContain('scope="read"')
    expect(/error="([^"]*)"/.exec(challenge ?? '')?.[1]).toBe(error)
  })

  it('names the missing scope and the malformed header, and is silent about rights and outages', () => {
    const scope = new Failure('insufficient_scope', { challenge: { error: 'insufficient_scope', scope: 'a b' } })
    expect(challengeFor(scope, resource)).toContain('error="insufficient_scope"')
    expect(challengeFor(scope, resource)).toContain('scope="a b"')
    const challenge = { error: 'insufficient_user_authentication', acrValues: 'urn:mfa phr', maxAge: 0 } as const
    expect(challengeFor(new Failure('insufficient_user_authentication', { challenge }), resource)).toMatch(
      /error="insufficient_user_authentication", .*, acr_values="urn:mfa phr", max_age="0", resource_metadata=/,
    )
    const malformed = new Failure('bad_request', { challenge: { error: 'invalid_request' } })
    expect(challengeFor(malformed, resource)).toContain('error="invalid_request"')
    expect(challengeFor(new Failure('no_role'), resource)).toBeUndefined()
    expect(challengeFor(new Failure('identity_provider_unavailable'), resource)).toBeUndefined()
    expect(challengeFor(new Failure('bad_request'), resource)).toBeUndefined()
  })

  it.each([
    ['https://h', 'https://h/.well-known/oauth-protected-resource'],
    ['https://h/', 'https://h/.well-known/oauth-protected-resource'],
    ['https://h:8443/a/b', 'https://h:8443/.well-known/oauth-protected-resource/a/b'],
    ['https://h/a/', 'https://h/.well-known/oauth-protected-resource/a/'],
    ['https://h/?k=v', 'https://h/.well-known/oauth-protected-resource?k=v'],
  ])('puts the well-known segment before the path of %s', (resource, url) => {
    expect(metadataUrl(resource)).toBe(url)
    expect(metadataPath(resource)).toBe(new URL(url).pathname + new URL(url).search)
  })
})

describe('failure bodies', () => {
  it('say the sentence of the table, the reason and the request id, and nothing of the cause', () => {
    const failure = new Failure('sts_failed', { detail: 'inside', cause: new Error('secret-in-cause') })
    expect(JSON.parse(mcpFailureBody(failure, 'id-1'))).toEqual({
      jsonrpc: '2.0',
      error: { code: -32000, message: FAILURES.sts_failed.sentence, data: { reason: 'sts_failed', requestId: 'id-1' } },
    })
    expect(JSON.parse(registryFailureBody(failure))).toEqual({
      error: 'server_error',
      error_description: FAILURES.sts_failed.sentence,
    })
    expect(JSON.parse(registryFailureBody(new Failure('not_found')))).toMatchObject({ error: 'not_found' })
    expect(JSON.parse(oauthFailureBody(new Failure('not_found')))).toMatchObject({ error: 'invalid_request' })
    expect(JSON.parse(oauthFailureBody(failure))).toMatchObject({ error: 'server_error' })
  })
})
