import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ANONYMOUS, asFailure } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, json, startEndpoint } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>
let count: number

/** A successful answer of RFC 6749 §5.1: another token each time. */
const given = (expiresIn = 3600) =>
  json({ access_token: `own-${(count += 1)}`, token_type: 'Bearer', expires_in: expiresIn })

beforeEach(async () => {
  count = 0
  endpoint = await startEndpoint(sockets, (request, response) => given()(request, response))
})
afterEach(() => sockets.closeAll())

const SECRETS = { 'idp/secret': 's3cret:/ %ü' }
const secret = { name: 'idp', key: 'secret' }
const callerOf = (index: number) => createCaller({ subject: `caller-${index}`, token: `token-${index}` })
const range = (length: number) => Array.from({ length }, (_, index) => index)

function open(more: Readonly<Record<string, unknown>> = {}) {
  const clock = createManualClock()
  const rig = createRig(sockets, { clock, secrets: SECRETS })
  const spec = { tokenUrl: endpoint.url, clientId: 'us', clientSecretRef: secret, ...more }
  return { clock, rig, spec, ...rig.clientCredentials(spec) }
}

const BASIC = `Basic ${Buffer.from('us:s3cret%3A%2F+%25%C3%BC').toString('base64')}`

describe('what is sent', () => {
  test.each<[string, Record<string, unknown>, readonly (readonly [string, string])[], string | undefined]>([
    ['the least', {}, [], BASIC],
    ['scopes', { scopes: ['a', 'b'] }, [['scope', 'a b']], BASIC],
    ['no scopes', { scopes: [] }, [], BASIC],
    ['an audience', { audience: 'https://api.example' }, [['audience', 'https://api.example']], BASIC],
    ['a resource', { resource: 'urn:example:api' }, [['resource', 'urn:example:api']], BASIC],
    [
      'parameters of its own',
      { additionalParams: { tenant: 'ä b', claims: '{}' } },
      [
        ['tenant', 'ä b'],
        ['claims', '{}'],
      ],
      BASIC,
    ],
    [
      'the secret in the body',
      { clientAuthMethod: 'client_secret_post' },
      [
        ['client_id', 'us'],
        ['client_secret', SECRETS['idp/secret']],
      ],
      undefined,
    ],
  ])('%s', async (_what, spec, form, authorization) => {
    expect(await open(spec).header(createCaller())).toBe('authorization: Bearer own-1')
    expect(endpoint.received).toMatchObject([
      { method: 'POST', path: '/token', form: [['grant_type', 'client_credentials'], ...form] },
    ])
    expect(endpoint.received[0]?.headers.authorization).toBe(authorization)
    expect(endpoint.received[0]?.headers['content-type']).toBe('application/x-www-form-urlencoded')
  })

  test('nothing of the caller', async () => {
    await open().header(callerOf(1))
    expect(JSON.stringify(endpoint.received)).not.toMatch(/caller-1|token-1/)
  })
})

describe('one token', () => {
  test('is requested once for 1,000 requests of 100 callers and anonymous ones', async () => {
    const { header, rig } = open()
    const headers = await Promise.all(
      range(1_000).map((index) => header(index % 2 === 0 ? callerOf(index % 100) : ANONYMOUS)),
    )
    expect(new Set(headers)).toEqual(new Set(['authorization: Bearer own-1']))
    expect(endpoint.received).toHaveLength(1)
    expect(rig.cache.list().groups).toMatchObject([{ type: 'clientCredentials', issuer: '', count: 1 }])
    expect(rig.output()).not.toContain('own-1')
  })

  test('serves all routes with the same config, and no other config', async () => {
    const { header, rig, spec } = open()
    await header(ANONYMOUS)
    expect(await rig.clientCredentials(spec).header(callerOf(1))).toBe('authorization: Bearer own-1')
    expect(await rig.clientCredentials(spec, 'other').header(callerOf(1))).toBe('authorization: Bearer own-2')
    expect(await rig.clientCredentials({ ...spec, scopes: ['a'] }).header(callerOf(1))).toBe(
      'authorization: Bearer own-3',
    )
  })

  test('goes into the header that is named', async () => {
    expect(await open({ externalTokenHeaderName: 'X-Token' }).header(ANONYMOUS)).toBe('x-token: Bearer own-1')
  })

  test('is renewed ahead of its end, behind the back of who asks', async () => {
    const { header, clock } = open()
    await header(ANONYMOUS)
    clock.advance(3_060_000)
    expect(await header(ANONYMOUS)).toBe('authorization: Bearer own-1')
    await expect.poll(() => header(ANONYMOUS)).toBe('authorization: Bearer own-2')
    expect(endpoint.received).toHaveLength(2)
  })

  test('is not purged with a caller, only with its config', async () => {
    const { header, rig } = open()
    await header(callerOf(1))
    expect(rig.cache.purge({ subject: 'caller-1' }).purged).toBe(0)
    expect(rig.cache.purge({ config: 'default/github' }).purged).toBe(1)
  })

  test('that was got with another secret is forgotten', async () => {
    const { header, rig } = open()
    await header(ANONYMOUS)
    rig.secrets.get('idp/secret').set('new')
    expect(await header(ANONYMOUS)).toBe('authorization: Bearer own-2')
    expect(rig.cache.list().entries).toBe(1)
  })
})

describe('cacheSkew', () => {
  // The usable part of an hour: less min(30 s, 10 %) of the lifetime.
  test.each([
    ['0s', 3_570],
    ['10m', 2_970],
    ['59m', 330],
    ['2h', 330],
  ])('%s of an hour leaves %i s', async (cacheSkew, seconds) => {
    const { header, rig } = open({ cacheSkew })
    await header(ANONYMOUS)
    expect(rig.cache.list().groups[0]?.soonestEndSeconds).toBe(seconds)
  })
})

describe('a backend that refuses the token', () => {
  /** A token that is older than a minute, as two callers were given it. */
  const opened = async (ageMs = 60_000) => {
    const own = open()
    const armed = await Promise.all([own.obtain(callerOf(1)), own.obtain(callerOf(2))])
    own.clock.advance(ageMs)
    return { ...own, armed, reject: async (index: 0 | 1) => own.stage.reject(await own.obtain(callerOf(index + 1))) }
  }
  const OLD = 'authorization: Bearer own-1'

  test('is shown one new token, for all callers that it refused', async () => {
    const { stage, armed, header, rig } = await opened()
    expect(await Promise.all(armed.map(async (one) => stage.reject(one)))).toEqual([true, true])
    expect(await header(callerOf(3))).toBe('authorization: Bearer own-2')
    // It had the old one, and the new one is there.
    expect(await stage.reject(armed[0])).toBe(true)
    expect(endpoint.received).toHaveLength(2)
    expect(rig.metrics.value('extauth_credential_fetches_total', 'clientCredentials', 'rejected', 'ok')).toBe(1)
  })

  test('takes it from no other caller while a new one is fetched', async () => {
    const { stage, armed, header } = await opened()
    let answer = (): void => undefined
    endpoint.answer = (request, response) => void (answer = () => given()(request, response))
    const renewed = stage.reject(armed[0])
    await expect.poll(() => endpoint.received.length).toBe(2)
    expect(await Promise.all(range(20).map((index) => header(callerOf(index))))).toEqual(range(20).map(() => OLD))
    answer()
    expect(await renewed).toBe(true)
    expect(await header(callerOf(4))).toBe('authorization: Bearer own-2')
  })

  test.each([
    ['answers 503', json({}, 503)],
    ['refuses the client', json({ error: 'invalid_client' }, 401)],
    ['gives the same token', json({ access_token: 'own-1', token_type: 'Bearer', expires_in: 3600 })],
  ])('takes it from no other caller where the endpoint %s', async (_what, answer) => {
    const { stage, armed, header, clock } = await opened()
    endpoint.answer = answer
    expect(await stage.reject(armed[0])).toBe(false)
    for (const index of range(20)) {
      clock.advance(1_000)
      expect(await header(callerOf(index))).toBe(OLD)
    }
    expect(endpoint.received.length).toBeLessThanOrEqual(3)
  })

  test('has a token of the last minute renewed for two callers, and for one never', async () => {
    const { clock, reject, header } = await opened(1_000)
    for (let second = 0; second < 58; second++) {
      expect(await reject(0)).toBe(false)
      clock.advance(1_000)
    }
    expect(endpoint.received).toHaveLength(1)
    expect(await reject(1)).toBe(true)
    expect(await header(callerOf(1))).toBe('authorization: Bearer own-2')
    expect(endpoint.received).toHaveLength(2)
  })

  test('has at most one a minute fetched by one caller, and by two ever fewer', async () => {
    const { clock, reject } = await opened()
    const fetchedIn = async (minutes: number, indexes: readonly (0 | 1)[]): Promise<number> => {
      const before = endpoint.received.length
      for (let second = 0; second < 60 * minutes; second++) {
        for (const index of indexes) await reject(index)
        clock.advance(1_000)
      }
      return endpoint.received.length - before
    }
    expect(await fetchedIn(10, [0])).toBeLessThanOrEqual(10)
    expect(await fetchedIn(10, [0, 1])).toBeLessThanOrEqual(10)
    // Nothing is refused for a while: then it is as in the beginning.
    clock.advance(60_000)
    await reject(0)
    clock.advance(60_000)
    await reject(0)
    expect(await fetchedIn(1, [0, 1])).toBeGreaterThan(3)
  })

  test('has tokens that live for seconds replaced as soon each time, where the last replacement was not refused', async () => {
    endpoint.answer = (request, response) => given(40)(request, response)
    const { clock, reject, header } = await opened(1_000)
    for (const round of range(5)) {
      await reject(0)
      expect(await reject(1)).toBe(true)
      clock.advance(35_000)
      const before = await header(ANONYMOUS)
      await expect.poll(() => header(ANONYMOUS)).not.toBe(before)
      expect(endpoint.received).toHaveLength(3 + 2 * round)
      clock.advance(1_500)
    }
  })
})

test.each([
  ['token_type N_A', { token_type: 'N_A' }],
  ['no token_type', { token_type: undefined }],
])('%s is no token for a header', async (_what, more) => {
  endpoint.answer = json({ access_token: 'own', expires_in: 60, ...more })
  await expect(open().header(ANONYMOUS)).rejects.toMatchObject({ code: 'exchange_failed' })
})

test('a rejected request is sent once in ten seconds for all callers, and is not reported as their fault', async () => {
  endpoint.answer = json({ error: 'invalid_grant' }, 400)
  const { header, clock } = open()
  const refused = (index: number) => header(callerOf(index)).catch((error: unknown) => asFailure(error))
  for (const index of range(50))
    expect(await refused(index)).toMatchObject({ code: 'config_error', challenge: undefined })
  expect(endpoint.received).toHaveLength(1)
  clock.advance(10_000)
  await refused(1)
  expect(endpoint.received).toHaveLength(2)
})

test('an endpoint that is down costs few requests, and a live token serves on', async () => {
  const { header, clock } = open()
  await header(ANONYMOUS)
  endpoint.answer = json({}, 503)
  clock.advance(3_060_000)
  for (const second of range(20)) {
    expect(await header(callerOf(second))).toBe('authorization: Bearer own-1')
    clock.advance(1_000)
  }
  // Two for each try: one retry.
  expect(endpoint.received.length).toBeLessThanOrEqual(1 + 2 * 20)
})
