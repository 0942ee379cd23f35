import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { type Answer, createRig, issued, json, startEndpoint } from '../../support/obtain/harness.ts'

const sockets = createSockets()
/** Gives the proxy its own token: another one each time. */
let actors: Awaited<ReturnType<typeof startEndpoint>>
/** Exchanges what it is shown, if who acts has a token of `actors`. */
let exchanges: Awaited<ReturnType<typeof startEndpoint>>
let count = 0

const SECRETS = { 'idp/secret': 's3cret', 'agent/secret': 'agents-s3cret' }
const basic = (id: string, secret: string) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
const ACTOR_TYPE = 'urn:ietf:params:oauth:token-type:access_token'

const giving: Answer = (request, response) => {
  const form = new Map(request.form)
  const isUs = request.headers.authorization === basic('agent', SECRETS['agent/secret'])
  if (!isUs) return json({ error: 'invalid_client' }, 401)(request, response)
  if (form.get('grant_type') !== 'client_credentials' || form.has('subject_token'))
    return json({ error: 'invalid_request' }, 400)(request, response)
  return json({ access_token: `actor-${(count += 1)}`, token_type: 'Bearer', expires_in: 3600 })(request, response)
}
const exchanging: Answer = (request, response) => {
  const form = new Map(request.form)
  if (request.headers.authorization !== basic('us', SECRETS['idp/secret']))
    return json({ error: 'invalid_client' }, 401)(request, response)
  if (!/^actor-\d+$/.test(form.get('actor_token') ?? '') || form.get('actor_token_type') !== ACTOR_TYPE)
    return json({ error: 'invalid_request' }, 400)(request, response)
  return json(issued(`for-${form.get('subject_token')}-by-${form.get('actor_token')}`, { expires_in: 600 }))(
    request,
    response,
  )
}

beforeEach(async () => {
  count = 0
  actors = await startEndpoint(sockets, giving)
  exchanges = await startEndpoint(sockets, exchanging)
})
afterEach(() => sockets.closeAll())

const callerOf = (index: number) => createCaller({ subject: `caller-${index}`, token: `token-${index}` })
const range = (length: number) => Array.from({ length }, (_, index) => index)

function open(grant: object = {}, secrets: Readonly<Record<string, string>> = SECRETS) {
  const clock = createManualClock()
  const rig = createRig(sockets, { clock, secrets })
  const clientCredentials = {
    tokenUrl: actors.url,
    clientId: 'agent',
    clientSecretRef: { name: 'agent', key: 'secret' },
    ...grant,
  }
  const spec = {
    tokenUrl: exchanges.url,
    audience: 'https://backend.example',
    clientId: 'us',
    clientSecretRef: { name: 'idp', key: 'secret' },
    actor: { clientCredentials },
  }
  return { rig, spec, clock, ...rig.exchange(spec) }
}

const shownActors = () => exchanges.received.map(({ form }) => new Map(form).get('actor_token'))

describe('the token of who acts', () => {
  test('is asked for once by 20 callers and goes with each exchange, never to the backend', async () => {
    const { header, rig } = open({ scopes: ['act'], audience: 'idp', additionalParams: { tenant: 'a' } })
    const headers = await Promise.all(range(20).map((index) => header(callerOf(index))))
    expect(headers).toEqual(range(20).map((index) => `authorization: Bearer for-token-${index}-by-actor-1`))
    expect(actors.received.map(({ form }) => form)).toEqual([
      [
        ['grant_type', 'client_credentials'],
        ['scope', 'act'],
        ['audience', 'idp'],
        ['tenant', 'a'],
      ],
    ])
    expect(shownActors()).toEqual(range(20).map(() => 'actor-1'))
    expect(rig.output()).not.toMatch(/actor-1|s3cret|token-\d/)
  })

  test('serves all routes with the same config, and no other config', async () => {
    const { header, rig, spec } = open()
    await header(callerOf(1))
    await rig.exchange(spec).header(callerOf(2))
    await rig.exchange(spec, 'other').header(callerOf(2))
    expect(shownActors()).toEqual(['actor-1', 'actor-1', 'actor-2'])
  })

  test('is a new one ahead of its end, behind the back of who asks', async () => {
    const { header, clock } = open()
    await header(callerOf(1))
    clock.advance(3_060_000)
    expect(await header(callerOf(2))).toBe('authorization: Bearer for-token-2-by-actor-1')
    await expect.poll(() => actors.received.length).toBe(2)
    // The answer that brings the new one may be on its way: each caller is a new exchange.
    let next = 3
    await expect.poll(() => header(callerOf((next += 1)))).toMatch(/-by-actor-2$/)
    expect(actors.received).toHaveLength(2)
  })

  test('is a new one after its end, once for all who come then', async () => {
    const { header, clock } = open()
    await header(callerOf(1))
    clock.advance(3_600_000)
    const headers = await Promise.all(range(20).map((index) => header(callerOf(index))))
    expect(headers).toEqual(range(20).map((index) => `authorization: Bearer for-token-${index}-by-actor-2`))
    expect(actors.received).toHaveLength(2)
  })

  test('is used for a shorter time by cacheSkew', async () => {
    const { header, clock } = open({ cacheSkew: '30m' })
    await header(callerOf(1))
    clock.advance(1_800_000)
    expect(await header(callerOf(2))).toBe('authorization: Bearer for-token-2-by-actor-2')
  })

  test.each(['agent/secret', 'idp/secret'] as const)(
    'is forgotten with what was got by it when %s changes',
    async (name) => {
      const { header, rig, clock } = open()
      await header(callerOf(1))
      rig.secrets.get(name).set('changed')
      await expect(header(callerOf(1))).rejects.toMatchObject({ code: 'config_error' })
      expect(actors.received).toHaveLength(2)
      rig.secrets.get(name).set(SECRETS[name])
      clock.advance(10_000)
      expect(await header(callerOf(1))).toMatch(/-by-actor-\d$/)
    },
  )

  test('is not asked for again when a backend refuses what was exchanged', async () => {
    const { obtain, stage } = open()
    expect(await stage.reject(await obtain(callerOf(1)))).toBe(true)
    await obtain(callerOf(1))
    expect([actors.received.length, exchanges.received.length]).toEqual([1, 2])
  })
})

describe('an actor token that is no longer good before its end', () => {
  /** As a server that has lost its tokens, or takes one back: RFC 8693 §2.2.2 has one error for both tokens. */
  const refusing =
    (actor: string | undefined, subject?: string): Answer =>
    (request, response) => {
      const form = new Map(request.form)
      if (form.get('actor_token') === actor || form.get('subject_token') === subject)
        return json({ error: 'invalid_request' }, 400)(request, response)
      return exchanging(request, response)
    }

  test('is replaced once for all callers, who notice nothing', async () => {
    const { header, clock } = open()
    await header(callerOf(0))
    clock.advance(60_000)
    exchanges.answer = refusing('actor-1')
    const headers = await Promise.all(range(20).map((index) => header(callerOf(index + 1))))
    expect(headers).toEqual(range(20).map((index) => `authorization: Bearer for-token-${index + 1}-by-actor-2`))
    expect(actors.received).toHaveLength(2)
    expect(await header(callerOf(50))).toMatch(/-by-actor-2$/)
    expect(shownActors().filter((actor) => actor === 'actor-1').length).toBeLessThanOrEqual(21)
  })

  test('is asked for once a minute at most, whatever callers show', async () => {
    const { header, clock } = open()
    await header(callerOf(0))
    exchanges.answer = refusing(undefined, 'token-1')
    for (const seconds of [10, 50, 10, 50]) {
      clock.advance(seconds * 1_000)
      await failureOf(header(callerOf(1)))
    }
    expect(actors.received).toHaveLength(3)
  })

  test('stays for those who are served with it when there is no other to be had', async () => {
    const { header, clock } = open()
    await header(callerOf(0))
    clock.advance(60_000)
    actors.answer = json({}, 503)
    exchanges.answer = refusing(undefined, 'token-1')
    expect(await failureOf(header(callerOf(1)))).toMatchObject({ code: 'exchange_denied' })
    expect(await header(callerOf(2))).toBe('authorization: Bearer for-token-2-by-actor-1')
  })
})

const failureOf = (got: Promise<unknown>) => got.then(String, (error: unknown) => asFailure(error))

test('a client that is refused is the configuration’s fault; nothing is exchanged, and the log says where', async () => {
  const { header, rig } = open({}, { ...SECRETS, 'agent/secret': 'another' })
  for (const index of range(5))
    expect(await failureOf(header(callerOf(index)))).toMatchObject({
      code: 'config_error',
      challenge: undefined,
      detail: expect.stringContaining('actor token endpoint answered 401 invalid_client') as string,
    })
  expect([actors.received.length, exchanges.received.length]).toEqual([1, 0])
  const lines = rig.log.lines.join('\n')
  expect(lines).toContain('actor token request failed')
  expect(lines).toContain(new URL(actors.url).host)
  expect(lines).not.toContain('token exchange failed')
})

test.each<[string, Answer]>([
  ['answers 503', json({}, 503)],
  ['hangs up', (_request, response) => void response.destroy()],
])('an endpoint that %s is an outage, and callers come again', async (_what, answer) => {
  actors.answer = answer
  const { header, clock, rig } = open()
  expect(await failureOf(header(callerOf(1)))).toMatchObject({ code: 'identity_provider_unavailable' })
  expect(exchanges.received).toHaveLength(0)
  expect(rig.log.lines.join('\n')).toContain('actor token request failed')
  actors.answer = giving
  clock.advance(30_000)
  expect(await header(callerOf(1))).toBe('authorization: Bearer for-token-1-by-actor-1')
})

test('while it is down callers are served with the token that is there', async () => {
  const { header, clock } = open()
  await header(callerOf(1))
  actors.answer = json({}, 503)
  clock.advance(3_060_000)
  for (const index of range(5)) expect(await header(callerOf(index + 2))).toMatch(/-by-actor-1$/)
})

test('a rejection by the exchange is reported as before', async () => {
  exchanges.answer = json({ error: 'invalid_client' }, 401)
  const { header, rig } = open()
  expect(await failureOf(header(callerOf(1)))).toMatchObject({ code: 'config_error' })
  expect(rig.log.lines.join('\n')).toContain('token exchange failed')
})
