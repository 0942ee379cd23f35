import { UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { after, monotonicNow, Secret } from '../../../src/core/index.ts'
import { createSubjectTokenSource } from '../../../src/obtain/subject-token-source.ts'
import type { UpstreamUse } from '../../../src/resources/index.ts'
import { createCaller, createManualClock, START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, issued, json, startEndpoint, type Answer } from '../../support/obtain/harness.ts'
import { createUpstreamTokens, loggedIn, use } from '../../support/obtain/upstream-tokens.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>
beforeEach(async () => {
  endpoint = await startEndpoint(sockets, (request, response) => {
    const shown = request.form.find(([name]) => name === 'subject_token')?.[1]
    json(issued(`exchanged-${shown}`))(request, response)
  })
})
afterEach(() => sockets.closeAll())

function rig(upstream: Partial<UpstreamUse> = {}, spec: object = {}) {
  const clock = createManualClock()
  const tokens = createUpstreamTokens(() => clock.now())
  const made = createRig(sockets, { clock, upstreamTokens: tokens })
  const config = { tokenUrl: endpoint.url, audience: 'backend', ...spec }
  return { ...made, tokens, advance: clock.advance.bind(clock), ...made.exchange(config, 'github', use(upstream)) }
}

const shown = () => endpoint.received.map(({ form }) => Object.fromEntries(form)['subject_token'])
const refusing =
  (tokens: readonly string[], error = 'invalid_grant'): Answer =>
  (request, response) => {
    const token = Object.fromEntries(request.form)['subject_token'] ?? ''
    const answer = tokens.includes(token) ? json({ error }, 400) : json(issued(`exchanged-${token}`))
    answer(request, response)
  }

test('the upstream’s access token is exchanged, once for all tokens of a session', async () => {
  const { header } = rig()
  const first = await header(loggedIn('one', { token: 'a' }))
  expect(first).toBe('authorization: Bearer exchanged-access_token-corp-one-0')
  expect(await header(loggedIn('one', { token: 'b' }))).toBe(first)
  expect(await header(loggedIn('two', { token: 'c' }))).toBe('authorization: Bearer exchanged-access_token-corp-two-0')
  expect(shown()).toEqual(['access_token-corp-one-0', 'access_token-corp-two-0'])
})

test('a missing upstream token is waited for until the deadline, for all callers', async () => {
  const never = () => new Promise<never>(() => undefined)
  const hangs = { current: never, reject: () => Promise.resolve(true), demand: never }
  const subject = createSubjectTokenSource({ named: 'corp', upstream: use() }, { upstreamTokens: hangs })
  const shown = subject.show(loggedIn('one'), new Secret('own'), after(monotonicNow(), 50), () =>
    Promise.resolve('used'),
  )
  await expect(shown).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
})

test('with subject_token_type id_token it is the ID token', async () => {
  const { header } = rig({ kind: 'id_token' }, { subjectTokenType: 'id_token' })
  await header(loggedIn('one'))
  expect(endpoint.received[0]?.form).toEqual(
    expect.arrayContaining([
      ['subject_token', 'id_token-corp-one-0'],
      ['subject_token_type', 'urn:ietf:params:oauth:token-type:id_token'],
    ]),
  )
})

test('what comes of it ends with the upstream’s token', async () => {
  const { header, tokens, advance } = rig()
  tokens.lifetimeMs = 120_000
  await header(loggedIn('one'))
  advance(110_000)
  await header(loggedIn('one'))
  expect(shown()).toHaveLength(2)
})

test('a token that the exchange refuses is refreshed, and exchanged once more', async () => {
  const { header, tokens } = rig()
  endpoint.answer = refusing(['access_token-corp-one-0'])
  expect(await header(loggedIn('one'))).toBe('authorization: Bearer exchanged-access_token-corp-one-1')
  expect(tokens.refreshes.get('one')).toBe(1)
})

test('what is refused then asks for a login', async () => {
  const { header } = rig()
  endpoint.answer = refusing(['access_token-corp-one-0', 'access_token-corp-one-1'])
  await expect(header(loggedIn('one'))).rejects.toMatchObject({
    code: 'no_session',
    challenge: { error: 'invalid_token' },
  })
  expect(shown()).toHaveLength(2)
})

test('so does a token that can’t be refreshed', async () => {
  const { header, tokens } = rig()
  tokens.canRefresh = false
  endpoint.answer = refusing(['access_token-corp-one-0'])
  await expect(header(loggedIn('one'))).rejects.toMatchObject({ code: 'no_session' })
  expect(shown()).toHaveLength(1)
})

test.each([
  ['access_denied', 'exchange_denied'],
  ['invalid_client', 'config_error'],
])('a refusal for another reason (%s) refreshes nothing', async (error, code) => {
  const { header, tokens } = rig()
  endpoint.answer = refusing(['access_token-corp-one-0'], error)
  await expect(header(loggedIn('one'))).rejects.toMatchObject({ code })
  expect(tokens.refreshes.size).toBe(0)
})

test('a caller from elsewhere has no session where the provider is named, and its own token where it was filled in', async () => {
  const stranger = createCaller({ issuer: 'https://id.example.com', token: 'of-a-stranger' })
  await expect(rig().header(stranger)).rejects.toMatchObject({ code: 'no_session' })
  await expect(rig({ issuer: undefined }).header(stranger)).rejects.toMatchObject({ code: 'no_session' })
  expect(await rig({ isExplicit: false }).header(stranger)).toBe('authorization: Bearer exchanged-of-a-stranger')
})

test('a stranger who claims a session gets nothing of it', async () => {
  const { header } = rig({ isExplicit: false })
  await header(loggedIn('one'))
  const stranger = createCaller({ issuer: 'https://id.example.com', token: 'of-a-stranger', claims: { tsid: 'one' } })
  expect(await header(stranger)).toBe('authorization: Bearer exchanged-of-a-stranger')
})

test('it does not load without an authorization server', () => {
  const { exchange } = createRig(sockets)
  const spec = { tokenUrl: endpoint.url, audience: 'a' }
  expect(() => exchange(spec, 'x', use())).toThrow(expect.objectContaining({ code: 'type_not_runnable' }))
})

describe('invalid_request, which is also said of a token that is no longer good (RFC 8693 §2.2.2)', () => {
  /** A token of the upstream that says how many seconds ago it was issued; `count` of refreshes at its end. */
  const issuedAgo = (seconds: number, count: number) =>
    `${new UnsecuredJWT({ iat: START_MS / 1_000 - seconds }).encode()}c2-${count}`

  function open(agoSeconds: readonly number[]) {
    const made = rig()
    const current = made.tokens.current.bind(made.tokens)
    made.tokens.current = async (caller, provider, kind) => {
      const token = await current(caller, provider, kind)
      const count = made.tokens.refreshes.get('one') ?? 0
      return { ...token, token: new Secret(issuedAgo(agoSeconds[count] ?? 0, count)) }
    }
    return made
  }
  const callerOf = (ageSeconds: number) => {
    const caller = loggedIn('one', { token: `aged-${ageSeconds}` })
    return { ...caller, claims: { ...caller.claims, iat: START_MS / 1_000 - ageSeconds } }
  }

  test('of an old one of the upstream is mended by a new one, however new the caller’s own is', async () => {
    const { header, tokens } = open([3_000, 0])
    endpoint.answer = refusing([issuedAgo(3_000, 0)], 'invalid_request')
    expect(await header(callerOf(1))).toBe(`authorization: Bearer exchanged-${issuedAgo(0, 1)}`)
    expect(tokens.refreshes.get('one')).toBe(1)
  })

  test('of a new one of the upstream is no matter of a login, however old the caller’s own is', async () => {
    const { header, tokens } = open([10])
    endpoint.answer = json({ error: 'invalid_request' }, 400)
    await expect(header(callerOf(3_000))).rejects.toMatchObject({ code: 'exchange_denied' })
    expect(tokens.refreshes.size).toBe(0)
  })
})
