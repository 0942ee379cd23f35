import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure, type FailureCode } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import {
  createRig,
  type Grant,
  GRANTS,
  issued,
  json,
  startEndpoint,
  type Answer,
} from '../../support/obtain/harness.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, json(issued('unused')))
})
afterEach(() => sockets.closeAll())

const jwt = (payload: unknown) =>
  `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.c2ln`
const T = 'SECRET-ISSUED-TOKEN'
const SECRETS = { 'idp/secret': 'SECRET-OF-CLIENT' }
const START_SECONDS = 1_800_000_000

/** Requests a token by this grant with this response: returns the header or the failure, and all messages. */
async function askWith(grant: Grant, answer: Answer, spec: Record<string, unknown> = {}, outbound = {}) {
  endpoint.answer = answer
  const rig = createRig(sockets, { secrets: SECRETS, outbound: { retry: false, ...outbound } })
  const asked = rig[grant]({
    tokenUrl: endpoint.url,
    audience: 'a',
    clientId: 'us',
    clientSecretRef: { name: 'idp', key: 'secret' },
    ...spec,
  })
  const caller = createCaller({ token: 'SECRET-OF-CALLER' })
  const result = await asked.header(caller).then(
    (header) => ({ header, failure: undefined }),
    (error: unknown) => ({ header: undefined, failure: asFailure(error) }),
  )
  const said = `${rig.output()}\n${result.failure?.message}\n${JSON.stringify(result.failure)}`
  expect(said).not.toMatch(/SECRET/)
  return { ...result, lifetimeSeconds: rig.cache.list().groups[0]?.soonestEndSeconds, rig }
}

const raw =
  (body: string | Buffer, contentType = 'application/json', status = 200): Answer =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': contentType }).end(body)
  }
const text = JSON.stringify(issued(T))

describe.each(GRANTS)('%s', (grant) => {
  const exchangeWith = (answer: Answer, spec: Record<string, unknown> = {}, outbound = {}) =>
    askWith(grant, answer, spec, outbound)

  /** The usable part of a lifetime: less min(30 s, 10 %). */
  test.each<[string, Record<string, unknown>, number]>([
    ['a plain answer', {}, 3_570],
    ['a numeric string', { expires_in: '600' }, 570],
    ['a fraction', { expires_in: 100.5 }, 90],
    ['no expires_in', { expires_in: undefined }, 270],
    ['expires_in null', { expires_in: null }, 270],
    ['no expires_in, a JWT', { expires_in: undefined, access_token: jwt({ exp: START_SECONDS + 900 }) }, 870],
    ['no expires_in, a JWT without exp', { expires_in: undefined, access_token: jwt({}) }, 270],
    ['expires_in beside a JWT', { access_token: jwt({ exp: START_SECONDS + 60 }) }, 3_570],
    ['bearer in another case', { token_type: 'bEARER' }, 3_570],
    ['an empty expires_in', { expires_in: '' }, 270],
    ['unrequested fields', { scope: 'x', refresh_token: 'SECRET-REFRESH', extra: { a: [1] } }, 3_570],
  ])('accepted: %s', async (_what, members, seconds) => {
    const { header, lifetimeSeconds } = await exchangeWith(json(issued(T, members)))
    expect(header).toBe(`authorization: Bearer ${typeof members.access_token === 'string' ? members.access_token : T}`)
    expect(lifetimeSeconds).toBe(seconds)
  })

  test.each<[string, Answer]>([
    ['201', json(issued(T), 201)],
    ['202', json(issued(T), 202)],
    ['JSON that says it is HTML', raw(text, 'text/html')],
    ['JSON without a content type', raw(text, '')],
  ])('accepted: %s', async (_what, answer) => {
    expect((await exchangeWith(answer)).header).toBe(`authorization: Bearer ${T}`)
  })

  test('an error in a 200 response means what it means with 400', async () => {
    const body = { error: 'invalid_target', error_description: 'SECRET' }
    const [ok, refused] = [await exchangeWith(json(body)), await exchangeWith(json(body, 400))]
    expect(ok.failure?.code).toBe(refused.failure?.code)
  })

  test.each<[string, Answer]>([
    ['no access_token', json(issued(T, { access_token: undefined }))],
    ['an empty access_token', json(issued(''))],
    ['access_token not a string', json(issued(T, { access_token: 42 }))],
    ['access_token with a space', json(issued(`${T} x`))],
    ['access_token with a line break', json(issued(`${T}\r\nX-Evil: 1`))],
    ['access_token not ASCII', json(issued(`${T}é`))],
    ['access_token over 16 KiB', json(issued(T.padEnd(16 * 1024 + 1, 'x')))],
    ['no token_type', json(issued(T, { token_type: undefined }))],
    ['another token_type', json(issued(T, { token_type: 'DPoP' }))],
    ['token_type not a string', json(issued(T, { token_type: ['Bearer'] }))],
    ['expires_in a word', json(issued(T, { expires_in: 'soon' }))],
    ['expires_in a boolean', json(issued(T, { expires_in: true }))],
    ['expires_in an object', json(issued(T, { expires_in: {} }))],
    ['expires_in zero', json(issued(T, { expires_in: 0 }))],
    ['expires_in negative', json(issued(T, { expires_in: -1 }))],
    ['expires_in infinite', raw(text.replace('3600', '1e999'))],
    [
      'no expires_in and a JWT that has ended',
      json(issued(jwt({ exp: START_SECONDS - 1 }), { expires_in: undefined })),
    ],
    ['200 with an error', json({ ...issued(T), error: 'invalid_grant' })],
    ['a name twice', raw(text.replace('{', '{"access_token":"SECRET-OTHER",'))],
    ['a name twice, once escaped', raw(text.replace('{', '{"\\u0061ccess_token":"SECRET-OTHER",'))],
    ['a name twice, deeper', raw(text.replace('{', '{"x":[{"a":1,"a":2}],'))],
    ['HTML', raw('<html>SECRET</html>', 'text/html')],
    ['HTML that says it is JSON', raw('<html>SECRET</html>')],
    ['an array', raw(`[${text}]`)],
    ['a string', raw('"SECRET"')],
    ['null', raw('null')],
    ['nothing', raw('')],
    ['a truncated object', raw(text.slice(0, -5))],
    ['something after the object', raw(`${text}x`)],
    ['a byte order mark', raw(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]))],
    ['not UTF-8', raw(Buffer.from(text.replace(T, 'T\xff'), 'latin1'))],
    ['over 1 MiB', raw(`${text.slice(0, -1)},"x":"${'x'.repeat(1024 * 1024)}"}`)],
    ['members that are inherited only', raw('{"__proto__":{"access_token":"SECRET"}}')],
    ['204', (_request, response) => void response.writeHead(204).end()],
    [
      'a redirect',
      (_request, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/token?SECRET' }).end(),
    ],
    ['400 without an error', json({ message: 'SECRET' }, 400)],
    ['400 with an error that is no string', json({ error: { code: 'SECRET' } }, 400)],
    ['400 HTML', raw('<html>SECRET</html>', 'text/html', 400)],
    ['406 without an error', raw('no', 'text/plain', 406)],
  ])('502 exchange_failed: %s', async (_what, answer) => {
    const { failure, rig } = await exchangeWith(answer)
    expect(failure?.code).toBe('exchange_failed')
    expect(rig.log.lines.join()).toContain('"reason":"exchange_failed"')
  })

  test.each<[string, number, FailureCode, FailureCode]>([
    ['invalid_grant', 400, 'invalid_token', 'config_error'],
    ['invalid_token', 401, 'invalid_token', 'config_error'],
    ['access_denied', 403, 'exchange_denied', 'config_error'],
    ['invalid_request', 400, 'exchange_denied', 'config_error'],
    ['invalid_target', 400, 'exchange_denied', 'config_error'],
    ['unauthorized_client', 400, 'exchange_denied', 'config_error'],
    ['invalid_client', 401, 'config_error', 'config_error'],
    ['unauthorized_client', 401, 'config_error', 'config_error'],
    ['invalid_scope', 400, 'config_error', 'config_error'],
    ['unsupported_grant_type', 400, 'config_error', 'config_error'],
    ['temporarily_unavailable', 400, 'identity_provider_unavailable', 'identity_provider_unavailable'],
    ['vendor_error', 400, 'exchange_failed', 'exchange_failed'],
    ['constructor', 403, 'exchange_failed', 'exchange_failed'],
  ])('OAuth error %s (%d) is %s; %s of a token of our own', async (error, status, ofCaller, ofOurs) => {
    // Another login does not fix a rejected assertion.
    const ofAssertion = ofCaller === 'invalid_token' ? 'exchange_denied' : ofCaller
    const code = grant === 'clientCredentials' ? ofOurs : grant === 'xaa' ? ofAssertion : ofCaller
    const { failure } = await exchangeWith(json({ error, error_description: 'SECRET details' }, status))
    expect(failure?.code).toBe(code)
    expect(failure?.challenge).toEqual(code === 'invalid_token' ? { error: 'invalid_token' } : undefined)
  })

  test.each([404, 405, 410, 415])('%i is a wrong tokenUrl, whatever the body says', async (status) => {
    for (const answer of [
      raw('<html>SECRET</html>', 'text/html', status),
      json({ error: 'invalid_grant' }, status),
      json({ error: 'Realm does not exist' }, status),
      json({ error: 'invalid_request' }, status),
    ]) {
      const { failure, rig } = await exchangeWith(answer)
      expect(failure).toMatchObject({ code: 'config_error', status: 500, challenge: undefined })
      // The request's own line has no more than this.
      expect(failure?.detail).toContain(endpoint.url)
      expect(failure?.detail).toContain(`/token answered ${status}`)
      const [line = ''] = rig.log.lines.map((entry) => JSON.stringify(entry))
      expect(line).toContain(String(status))
      expect(line).toContain(endpoint.url)
    }
  })

  test.each([
    ['vendor_error.7', 'vendor_error.7'],
    ['x'.repeat(64), 'x'.repeat(64)],
    ['x'.repeat(65), 'an invalid error code'],
    ['two words', 'an invalid error code'],
    ['line\nbreak', 'an invalid error code'],
  ])('the error code %j is named in the detail as %j', async (error, named) => {
    const { failure } = await exchangeWith(json({ error }, 400))
    const endpoint = grant === 'xaa' ? 'token endpoint of the target' : 'token endpoint'
    expect(failure?.detail).toBe(`${endpoint} answered 400 ${named === error ? error : `with ${named}`}`)
  })

  // After a 5xx another token may succeed, so that one cools down for five seconds. There is one service token.
  const rests = grant === 'clientCredentials' ? 1 : 5
  test.each<[string, Answer, number]>([
    ['429 with seconds', json({ error: 'invalid_grant' }, 429, { 'retry-after': '17' }), 17],
    ['429 with a date', json({}, 429, { 'retry-after': new Date(START_SECONDS * 1_000 + 8_000).toUTCString() }), 8],
    ['503 with a date that is past', json({}, 503, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }), rests],
    ['503 with nonsense', json({}, 503, { 'retry-after': 'later' }), rests],
    ['503 with a day', json({}, 503, { 'retry-after': '86400' }), 3_600],
    ['500', raw('SECRET', 'text/html', 500), rests],
    ['a reset', (_request, response) => void response.socket?.destroy(), 1],
    [
      'a body that breaks off',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
        response.write(text, () => response.socket?.destroy())
      },
      1,
    ],
  ])('503 identity_provider_unavailable: %s', async (_what, answer, retryAfterSeconds) => {
    const { failure } = await exchangeWith(answer)
    expect(failure).toMatchObject({ code: 'identity_provider_unavailable', retryAfterSeconds })
  })

  test('an answer that does not come in time is an outage', async () => {
    const { failure } = await exchangeWith(() => undefined, {}, { deadlineMs: 50 })
    expect(failure).toMatchObject({ code: 'identity_provider_unavailable', retryAfterSeconds: 1 })
  })

  test('a 503 is tried once more before anybody hears of it', async () => {
    let count = 0
    const { header } = await exchangeWith(
      (request, response) => {
        count += 1
        json(count === 1 ? {} : issued(T), count === 1 ? 503 : 200)(request, response)
      },
      {},
      { retry: true },
    )
    expect([header, count]).toEqual([`authorization: Bearer ${T}`, 2])
  })

  test('a lifetime that passes while the answer is on its way is over when it arrives', async () => {
    endpoint.answer = (request, response) => {
      rig.clock.advance?.(5_000)
      json(issued(T, { expires_in: 5 }))(request, response)
    }
    const rig = createRig(sockets, { secrets: SECRETS })
    const client = { clientId: 'us', clientSecretRef: { name: 'idp', key: 'secret' } }
    const { header } = rig[grant]({ tokenUrl: endpoint.url, audience: 'a', ...client })
    await expect(header(createCaller())).rejects.toMatchObject({ code: 'exchange_failed' })
  })
})

describe('exchange only', () => {
  const exchangeWith = (answer: Answer, spec: Record<string, unknown> = {}) => askWith('exchange', answer, spec)

  test.each<[string, Record<string, unknown>, number]>([
    ['the JWT type', { issued_token_type: 'urn:ietf:params:oauth:token-type:jwt' }, 3_570],
    ['N_A', { token_type: 'N_A' }, 3_570],
    ['an eternal token ends with the caller’s own', { expires_in: 1e12 }, 86_370],
  ])('accepted: %s', async (_what, members, seconds) => {
    const { header, lifetimeSeconds } = await exchangeWith(json(issued(T, members)))
    expect([header, lifetimeSeconds]).toEqual([`authorization: Bearer ${T}`, seconds])
  })

  test('a token type that was asked for is accepted when it is what was issued', async () => {
    const type = 'urn:ietf:params:oauth:token-type:id_token'
    const { header } = await exchangeWith(json(issued(T, { issued_token_type: type })), { requestedTokenType: type })
    expect(header).toBe(`authorization: Bearer ${T}`)
  })

  test.each<[string, Answer]>([
    ['no issued_token_type', json(issued(T, { issued_token_type: undefined }))],
    [
      'another issued_token_type',
      json(issued(T, { issued_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' })),
    ],
  ])('502 exchange_failed: %s', async (_what, answer) => {
    expect((await exchangeWith(answer)).failure?.code).toBe('exchange_failed')
  })
})
