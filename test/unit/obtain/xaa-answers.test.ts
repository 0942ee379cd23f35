import { UnsecuredJWT } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { type Answer, json } from '../../support/obtain/harness.ts'
import { idCaller, openXaa } from '../../support/obtain/xaa-rig.ts'
import { asserted, granted, ID_JAG_TYPE, jag, jwt, RESOURCE, TARGET } from '../../support/obtain/xaa-tokens.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const MARK = 'mark-of-what-came'
const NOW = START_MS / 1_000
const html: Answer = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${MARK}</h1>`)
const claims = (more: object): Answer => json(asserted(jag({ jti: MARK, ...more })))
const answer = (members: object): Answer => json(asserted(jag({ jti: MARK }), members))
const token = (text: unknown): Answer => json(asserted(jag(), { access_token: text }))
const good = jag()
const [head = '', body = ''] = good.split('.')

/** Invalid identity assertions, and the field that the log names. */
const NO_ASSERTIONS: readonly (readonly [string, Answer, string])[] = [
  [
    'an access token',
    answer({ issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }),
    'issued_token_type',
  ],
  ['a JWT of no kind', answer({ issued_token_type: 'urn:ietf:params:oauth:token-type:jwt' }), 'issued_token_type'],
  ['no kind', answer({ issued_token_type: undefined }), 'issued_token_type'],
  ['the kind in other letters', answer({ issued_token_type: ID_JAG_TYPE.toUpperCase() }), 'issued_token_type'],
  ['a bearer token', answer({ token_type: 'Bearer' }), 'token_type'],
  ['no token_type', answer({ token_type: undefined }), 'token_type'],
  ['a token_type that is a list', answer({ token_type: ['N_A'] }), 'token_type'],
  ['no token', token(undefined), 'access_token'],
  ['an empty token', token(''), 'access_token'],
  ['a token that is an object', token({}), 'access_token'],
  ['an opaque token', token(MARK), 'access_token'],
  ['a JWT without signature', token(`${head}.${body}.`), 'access_token'],
  ['an encrypted token', token(`${good}.a.b`), 'access_token'],
  ['a token with two lines', token(`${good}\n`), 'access_token'],
  ['a token that is too long', token(jag({ x: 'x'.repeat(17_000) })), 'access_token'],
  ['an unsecured token', token(new UnsecuredJWT({}).encode()), 'access_token'],
  [
    'a JWT with a name twice',
    token(`${head}.${Buffer.from('{"aud":"a","aud":"b"}').toString('base64url')}.c2ln`),
    'access_token',
  ],
  ['no typ', token(jwt({ aud: TARGET })), 'typ'],
  ['another typ', token(jag({}, { typ: 'at+jwt' })), 'typ'],
  ['a typ that begins so', token(jag({}, { typ: 'oauth-id-jag+jwt2' })), 'typ'],
  ['a typ that is a list', token(jag({}, { typ: ['oauth-id-jag+jwt'] })), 'typ'],
  ['no aud', claims({ aud: undefined }), 'aud'],
  ['another aud', claims({ aud: 'https://other.example' }), 'aud'],
  ['an aud with a slash more', claims({ aud: `${TARGET}/` }), 'aud'],
  ['two auds', claims({ aud: [TARGET, 'https://other.example'] }), 'aud'],
  ['the same aud twice', claims({ aud: [TARGET, TARGET] }), 'aud'],
  ['an empty list of auds', claims({ aud: [] }), 'aud'],
  ['no client_id', claims({ client_id: undefined }), 'client_id'],
  ['the client_id of the identity provider', claims({ client_id: 'us' }), 'client_id'],
  ['a client_id in a list', claims({ client_id: ['us-there'] }), 'client_id'],
  ['no resource', claims({ resource: undefined }), 'resource'],
  ['another resource', claims({ resource: 'https://mcp.other.example' }), 'resource'],
  ['two resources', claims({ resource: [RESOURCE, 'https://mcp.other.example'] }), 'resource'],
  ['no exp', claims({ exp: undefined }), 'exp'],
  ['an exp that is text', claims({ exp: String(NOW + 300) }), 'exp'],
  ['an exp that is over', json(asserted(jag({ exp: NOW }))), 'exp'],
  ['a lifetime that is over', answer({ expires_in: 0 }), 'expires_in'],
  ['HTML', html, 'JSON object'],
  ['an empty object', json({}), 'access_token'],
  ['a list', json([]), 'JSON object'],
  ['an error with 200', json({ ...asserted(jag()), error: 'x' }), 'error'],
  ['a redirect', json(asserted(jag()), 302, { location: 'https://other.example' }), '302'],
]

describe('an answer of the identity provider that has', () => {
  test.each(NO_ASSERTIONS)(
    '%s: 502, nothing of it goes on, and the log names the member',
    async (_what, wrong, member) => {
      const { header, idp, target, rig } = await openXaa(sockets)
      idp.answer = wrong
      const failure = await header(idCaller()).then(String, asFailure)
      expect(failure).toMatchObject({ code: 'exchange_failed', challenge: undefined })
      expect([target.received, rig.cache.list().entries]).toEqual([[], 0])
      const lines = rig.log.lines.filter((line) => line.includes('identity assertion failed'))
      expect(lines).toHaveLength(1)
      expect(lines[0]).toContain(member)
      expect(rig.output()).not.toMatch(new RegExp(`${MARK}|eyJ|s3cret`))
    },
  )

  test.each([
    ['aud as an array of one', { aud: [TARGET] }, {}],
    ['resource as an array of one', { resource: [RESOURCE] }, {}],
    ['typ with its prefix', {}, { typ: 'application/OAuth-ID-JAG+jwt' }],
  ])('%s is taken', async (_what, more, top) => {
    const { header, idp } = await openXaa(sockets)
    idp.answer = json(asserted(jag({ act: 'x', ...more }, top), { token_type: 'n_a', expires_in: undefined }))
    expect(await header(idCaller())).toBe('authorization: Bearer token-of-alice-at-x')
  })

  test('an unrequested resource is ignored', async () => {
    const { header, idp } = await openXaa(sockets, { spec: { targetResource: undefined } })
    idp.answer = json(asserted(jag({ act: 'x', resource: 'https://other.example' })))
    expect(await header(idCaller())).toBe('authorization: Bearer token-of-alice-at-x')
  })
})

/** Invalid access tokens, and the field that the log names. */
const NO_TOKENS: readonly (readonly [string, Answer, string])[] = [
  ['token_type N_A', json(granted(MARK, { token_type: 'N_A' })), 'token_type'],
  ['no token_type', json(granted(MARK, { token_type: undefined })), 'token_type'],
  ['a token bound to a key', json(granted(MARK, { token_type: 'DPoP' })), 'token_type'],
  ['no token', json({ token_type: 'Bearer' }), 'access_token'],
  ['an empty token', json(granted('')), 'access_token'],
  ['a token with a line break', json(granted(`${MARK}\r\nx: y`)), 'access_token'],
  ['a token of letters that no header takes', json(granted(`${MARK}ä`)), 'access_token'],
  ['a token that is too long', json(granted(MARK + 'x'.repeat(16 * 1024))), 'access_token'],
  ['a lifetime of nothing', json(granted(MARK, { expires_in: -1 })), 'expires_in'],
  ['a lifetime that is no number', json(granted(MARK, { expires_in: 'soon' })), 'expires_in'],
  ['HTML', html, 'JSON object'],
  ['a list', json([MARK]), 'JSON object'],
  ['an error with 200', json({ ...granted(MARK), error: 'x' }), 'error'],
  ['a redirect', json(granted(MARK), 307, { location: 'https://other.example' }), '307'],
  ['an error without words', json({ message: MARK }, 400), '400 without an OAuth error'],
]

describe('an answer of the target that has', () => {
  test.each(NO_TOKENS)('%s: 502, and nothing of it is used', async (_what, wrong, member) => {
    const { header, target, rig } = await openXaa(sockets)
    target.answer = wrong
    await expect(header(idCaller())).rejects.toMatchObject({ code: 'exchange_failed', challenge: undefined })
    expect(rig.cache.list().entries).toBe(1)
    const lines = rig.log.lines.filter((line) => line.includes('token for an identity assertion failed'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(member)
    expect(rig.output()).not.toMatch(new RegExp(`${MARK}|eyJ|s3cret`))
  })
})

describe('an error', () => {
  const OLD = { claims: { iat: NOW - 600 } }
  test.each<[leg: 'idp' | 'target', error: string, status: number, code: string, caller?: object]>([
    ['idp', 'invalid_grant', 400, 'invalid_token'],
    ['idp', 'invalid_request', 400, 'exchange_denied'],
    ['idp', 'invalid_request', 400, 'invalid_token', OLD],
    ['idp', 'access_denied', 403, 'exchange_denied'],
    ['idp', 'invalid_target', 400, 'exchange_denied'],
    ['idp', 'unauthorized_client', 400, 'exchange_denied'],
    ['idp', 'invalid_client', 401, 'config_error'],
    ['idp', 'invalid_scope', 400, 'config_error'],
    ['idp', 'unsupported_grant_type', 400, 'config_error'],
    ['idp', 'something_else', 400, 'exchange_failed'],
    ['idp', 'temporarily_unavailable', 400, 'identity_provider_unavailable'],
    ['idp', 'server_error', 500, 'identity_provider_unavailable'],
    ['target', 'invalid_grant', 400, 'exchange_denied'],
    ['target', 'invalid_token', 401, 'exchange_denied'],
    ['target', 'invalid_request', 400, 'exchange_denied', OLD],
    ['target', 'access_denied', 403, 'exchange_denied'],
    ['target', 'invalid_client', 401, 'config_error'],
    ['target', 'unsupported_grant_type', 400, 'config_error'],
    ['target', 'invalid_scope', 400, 'config_error'],
    ['target', 'something_else', 400, 'exchange_failed'],
    ['target', 'not_found', 404, 'config_error'],
    ['target', 'slow_down', 429, 'identity_provider_unavailable'],
  ])('of leg %s: %s (%i) is %s', async (leg, error, status, code, caller = {}) => {
    const opened = await openXaa(sockets)
    opened[leg].answer = json({ error, error_description: MARK }, status)
    await expect(opened.header(idCaller(caller))).rejects.toMatchObject({ code })
    expect(opened.rig.output()).not.toMatch(new RegExp(`${MARK}|eyJ|s3cret`))
  })

  test.each([
    [{}, {}],
    [
      { acr_values: 'urn:mfa phr', max_age: 300 },
      { acrValues: 'urn:mfa phr', maxAge: 300 },
    ],
    [{ acr_values: 'a"\r\nx: y', max_age: -1 }, {}],
    [{ acr_values: ['a'], max_age: '300' }, {}],
    [{ acr_values: 'x'.repeat(1_025), max_age: 1.5 }, {}],
  ])('that asks for a stronger login is a challenge: %j', async (members, challenge) => {
    const { header, idp } = await openXaa(sockets)
    const error = 'insufficient_user_authentication'
    idp.answer = json({ error, ...members }, 400)
    const caller = idCaller()
    for (const _ of [1, 2])
      expect(await header(caller).catch(asFailure)).toMatchObject({ code: error, challenge: { error, ...challenge } })
    expect(Object.keys(asFailure(await header(caller).catch(asFailure)).challenge ?? {})).toHaveLength(
      1 + Object.keys(challenge).length,
    )
    // The same token gets the same failure.
    expect(idp.received).toHaveLength(1)
  })
})
