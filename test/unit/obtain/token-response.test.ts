import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure, type FailureCode } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, type Grant, issued, json, startEndpoint, type Answer } from '../../support/obtain/harness.ts'

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

/** Which response is which failure: the rows of test/unit/oauth/token-response.test.ts. This is each grant on the wire. */
describe.each<[Grant, ofGrant: FailureCode, ofTarget: FailureCode, rests: number]>([
  ['exchange', 'invalid_token', 'exchange_denied', 5],
  // There is one token for all callers: no pause of a caller's token.
  ['clientCredentials', 'config_error', 'config_error', 1],
  ['obo', 'invalid_token', 'exchange_denied', 5],
  // Another login does not fix a rejected assertion.
  ['xaa', 'exchange_denied', 'exchange_denied', 5],
])('%s', (grant, ofGrant, ofTarget, rests) => {
  test('the token is the header for its lifetime less min(30 s, 10 %)', async () => {
    const { header, lifetimeSeconds } = await askWith(grant, json(issued(T)))
    expect([header, lifetimeSeconds]).toEqual([`authorization: Bearer ${T}`, 3_570])
  })

  test('an OAuth error has the meaning of this grant', async () => {
    for (const [error, status, code] of [
      ['invalid_grant', 400, ofGrant],
      ['invalid_target', 400, ofTarget],
      ['unauthorized_client', 401, 'config_error'],
      ['vendor_error', 400, 'exchange_failed'],
    ] as const) {
      const { failure, rig } = await askWith(grant, json({ error, error_description: 'SECRET details' }, status))
      expect(failure?.code).toBe(code)
      expect(failure?.challenge).toEqual(code === 'invalid_token' ? { error: 'invalid_token' } : undefined)
      expect(failure?.detail).toBe(
        `${grant === 'xaa' ? 'token endpoint of the target' : 'token endpoint'} answered ${status} ${error}`,
      )
      expect(rig.log.lines.join()).toContain(`"reason":"${code}"`)
    }
  })

  test('a wrong tokenUrl is logged with its address', async () => {
    const { failure, rig } = await askWith(grant, json({ error: 'invalid_grant' }, 404))
    expect(failure).toMatchObject({ code: 'config_error', status: 500, challenge: undefined })
    // The log line of the request has only the detail.
    expect(failure?.detail).toMatch(/\/token answered 404$/)
    const [line = ''] = rig.log.lines.map((entry) => JSON.stringify(entry))
    expect(line).toContain('answered 404')
    expect(line).toContain(endpoint.url)
  })

  test.each<[string, Answer, number, object?]>([
    ['500', raw('SECRET', 'text/html', 500), rests],
    ['a reset', (_request, response) => void response.socket?.destroy(), 1],
    ['no response in time', () => undefined, 1, { deadlineMs: 50 }],
  ])('%s is an outage', async (_what, answer, retryAfterSeconds, outbound = {}) => {
    const { failure } = await askWith(grant, answer, {}, outbound)
    expect(failure).toMatchObject({ code: 'identity_provider_unavailable', retryAfterSeconds })
  })

  test('a request is repeated once after a 503', async () => {
    let count = 0
    const { header } = await askWith(
      grant,
      (request, response) => {
        count += 1
        json(count === 1 ? {} : issued(T), count === 1 ? 503 : 200)(request, response)
      },
      {},
      { retry: true },
    )
    expect([header, count]).toEqual([`authorization: Bearer ${T}`, 2])
  })

  test('a lifetime counts from the request: a slow response is expired on arrival', async () => {
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
    ['no expires_in', { expires_in: undefined }, 270],
    ['no expires_in, a JWT', { expires_in: undefined, access_token: jwt({ exp: START_SECONDS + 900 }) }, 870],
    ['no expires_in, a JWT without exp', { expires_in: undefined, access_token: jwt({}) }, 270],
    ['expires_in beside a JWT', { access_token: jwt({ exp: START_SECONDS + 60 }) }, 3_570],
  ])('accepted: %s', async (_what, members, seconds) => {
    const { header, lifetimeSeconds } = await exchangeWith(json(issued(T, members)))
    const token = typeof members['access_token'] === 'string' ? members['access_token'] : T
    expect([header, lifetimeSeconds]).toEqual([`authorization: Bearer ${token}`, seconds])
  })

  test('a requested token type is accepted when it was issued', async () => {
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
    ['no expires_in and an expired JWT', json(issued(jwt({ exp: START_SECONDS - 1 }), { expires_in: undefined }))],
    ['over 1 MiB', raw(`${text.slice(0, -1)},"x":"${'x'.repeat(1024 * 1024)}"}`)],
    [
      'a redirect',
      (_request, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/token?SECRET' }).end(),
    ],
  ])('502 exchange_failed: %s', async (_what, answer) => {
    const { failure, rig } = await exchangeWith(answer)
    expect(failure?.code).toBe('exchange_failed')
    expect(rig.log.lines.join()).toContain('"reason":"exchange_failed"')
  })

  test('a body that breaks off is an outage', async () => {
    const { failure } = await exchangeWith((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
      response.write(text, () => response.socket?.destroy())
    })
    expect(failure).toMatchObject({ code: 'identity_provider_unavailable', retryAfterSeconds: 1 })
  })
})
