import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { CLAIMS } from '../../support/obtain/entra-answers.ts'
import { createRig, type Answer, json, startEndpoint } from '../../support/obtain/harness.ts'
import { createUpstreamTokens, loggedIn, use } from '../../support/obtain/upstream-tokens.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

/** A token that says for whose it was given. */
const inKind: Answer = (request, response) => {
  const assertion = new Map(request.form).get('assertion')
  json({ token_type: 'Bearer', expires_in: 3600, access_token: `for-${assertion}` })(request, response)
}
const refused = (code: number, more: object = {}) => json({ error: 'invalid_grant', error_codes: [code], ...more }, 400)

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, inKind)
})
afterEach(() => sockets.closeAll())

function open(upstream = use()) {
  const clock = createManualClock()
  const tokens = createUpstreamTokens(() => clock.now())
  const rig = createRig(sockets, { clock, upstreamTokens: tokens, secrets: { 'idp/secret': 's3cret' } })
  const spec = { tokenUrl: endpoint.url, audience: 'api://backend', subjectTokenProviderName: 'corp' }
  const { header } = rig.obo(spec, 'github', upstream)
  const ask = (caller = loggedIn('s1')) => header(caller).catch((error: unknown) => asFailure(error).code)
  return { clock, tokens, ask, header }
}

describe('a caller who logged in here', () => {
  test('has the upstream’s token shown, whatever claims the own token has', async () => {
    const { ask } = open()
    const own = loggedIn('s1')
    // Our own tokens say nothing of permissions at the tenant.
    const caller = { ...own, claims: { ...own.claims, scp: '', idtyp: 'app' } }
    expect(await ask(caller)).toBe('authorization: Bearer for-access_token-corp-s1-0')
    expect(await ask(loggedIn('s2'))).toBe('authorization: Bearer for-access_token-corp-s2-0')
    expect(endpoint.received).toHaveLength(2)
  })

  test('has a token that ends with the upstream’s', async () => {
    const { ask, tokens, clock } = open()
    tokens.lifetimeMs = 120_000
    await ask()
    clock.advance(110_000)
    await ask()
    expect(endpoint.received).toHaveLength(2)
  })

  test('with a claims challenge logs in again: nothing is refreshed, the provider gets the claims', async () => {
    const { ask, tokens } = open()
    endpoint.answer = refused(50076, { claims: CLAIMS })
    expect(await ask()).toBe('interaction_required')
    expect([tokens.demands, tokens.refreshes.size]).toEqual([[['s1', 'corp', CLAIMS]], 0])
    endpoint.answer = inKind
    expect(await ask()).toBe('interaction_required')
    expect(endpoint.received).toHaveLength(1)
    // The session of the new login.
    expect(await ask(loggedIn('s1-again'))).toBe('authorization: Bearer for-access_token-corp-s1-again-0')
  })

  test('of whom more is wanted, but nothing is named, keeps the session', async () => {
    const { ask, tokens } = open()
    endpoint.answer = refused(50076)
    expect(await ask()).toBe('interaction_required')
    expect([tokens.demands, tokens.refreshes.size]).toEqual([[], 0])
  })

  test('whose login has ended: the upstream’s token is renewed once, then it is no_session', async () => {
    const { ask, tokens } = open()
    endpoint.answer = refused(50173)
    expect(await ask()).toBe('no_session')
    expect(tokens.refreshes.get('s1')).toBe(1)
    expect(endpoint.received).toHaveLength(2)
  })

  test.each([
    [65001, 'exchange_denied'],
    [7000114, 'not_a_user_token'],
    [7000222, 'config_error'],
  ])('AADSTS%i is %s, and nothing is refreshed', async (code, expected) => {
    const { ask, tokens } = open()
    endpoint.answer = refused(code)
    expect(await ask()).toBe(expected)
    expect([tokens.refreshes.size, endpoint.received.length]).toEqual([0, 1])
  })
})

describe('a caller from elsewhere', () => {
  test('has no token at a provider that is named', async () => {
    expect(await open().ask(createCaller())).toBe('no_session')
    expect(endpoint.received).toEqual([])
  })

  test('has the own token shown where the provider was filled in', async () => {
    const { ask } = open(use({ isExplicit: false }))
    expect(await ask(createCaller({ token: 'own' }))).toBe('authorization: Bearer for-own')
    expect(await ask(createCaller({ claims: { idtyp: 'app' } }))).toBe('not_a_user_token')
  })
})

test('without an authorization server a named provider gives nothing', () => {
  const rig = createRig(sockets, { secrets: { 'idp/secret': 's3cret' } })
  const spec = { tokenUrl: endpoint.url, audience: 'a', subjectTokenProviderName: 'corp' }
  expect(() => rig.obo(spec)).toThrow(expect.objectContaining({ code: 'type_not_runnable' }))
})
