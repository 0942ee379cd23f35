import { afterEach, expect, test } from 'vitest'
import { ANONYMOUS, type Credential, type Known } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig } from '../../support/obtain/harness.ts'
import { createUpstreamTokens, HOUR, loggedIn, OURS, use } from '../../support/obtain/upstream-tokens.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

function rig() {
  const clock = createManualClock()
  const upstreamTokens = createUpstreamTokens(() => clock.now())
  const made = createRig(sockets, { clock, upstreamTokens })
  return { ...made, tokens: upstreamTokens, advance: clock.advance.bind(clock), ...made.upstreamInject(use()) }
}

const credentialOf = async (armed: unknown) => ((await armed) as { credential: Credential }).credential

test('each caller has the token of the own session', async () => {
  const { header, tokens } = rig()
  expect(await header(loggedIn('one'))).toBe('authorization: Bearer access_token-corp-one-0')
  expect(await header(loggedIn('two', { subject: 'bob' }))).toBe('authorization: Bearer access_token-corp-two-0')
  expect(tokens.asked).toHaveLength(2)
})

test('a warm request waits for nothing, until the token is due', async () => {
  const { obtain, tokens, advance } = rig()
  const caller = loggedIn('one')
  const first = await credentialOf(obtain(caller))
  advance(HOUR - 60_001)
  const warm = obtain(caller)
  expect(warm).not.toBeInstanceOf(Promise)
  expect(await credentialOf(warm)).toBe(first)
  expect(tokens.asked).toHaveLength(1)
  advance(1)
  expect(await credentialOf(obtain(caller))).not.toBe(first)
  expect(tokens.asked).toHaveLength(2)
})

test('a refused token is renewed once for all who were given it', async () => {
  const { stage, obtain, header, tokens } = rig()
  const callers = [loggedIn('one', { token: 'first' }), loggedIn('one', { token: 'second' })]
  const armed = await Promise.all(
    callers.map(async (caller) => ({
      known: { caller, matched: { route: { name: 'r' } } } as unknown as Known,
      credential: await credentialOf(obtain(caller)),
    })),
  )
  const refused = armed as unknown as Parameters<typeof stage.reject>[0][]
  expect(await Promise.all(refused.map(async (one) => stage.reject(one)))).toEqual([true, true])
  for (const caller of callers) expect(await header(caller)).toBe('authorization: Bearer access_token-corp-one-1')
  expect(tokens.refreshes.get('one')).toBe(1)
})

test('a token that can’t be renewed is not tried again', async () => {
  const { stage, obtain, tokens } = rig()
  tokens.canRefresh = false
  const caller = loggedIn('one')
  const credential = await credentialOf(obtain(caller))
  const armed = { known: { caller, matched: { route: { name: 'r' } } }, credential } as unknown as Parameters<
    typeof stage.reject
  >[0]
  expect(await stage.reject(armed)).toBe(false)
})

test('who logged in elsewhere, or nowhere, has none', async () => {
  const { obtain, tokens } = rig()
  const from = (issuer: string) => () => obtain(createCaller({ issuer, claims: { tsid: 'one', client_id: 'editor' } }))
  expect(from('https://id.example.com')).toThrow(expect.objectContaining({ code: 'no_session' }))
  expect(from(`${OURS}/`)).toThrow(expect.objectContaining({ code: 'no_session' }))
  expect(() => obtain(ANONYMOUS)).toThrow(expect.objectContaining({ code: 'config_error' }))
  expect(tokens.asked).toEqual([])
})

test('a session that ended gives no token', async () => {
  const { header, tokens } = rig()
  tokens.ended.add('one')
  await expect(header(loggedIn('one'))).rejects.toMatchObject({ code: 'no_session' })
})

test('it does not load without an authorization server', () => {
  const { upstreamInject } = createRig(sockets)
  expect(() => upstreamInject(use())).toThrow(expect.objectContaining({ code: 'type_not_runnable' }))
})

test('the token is in no log, metric or list', async () => {
  const { header, output } = rig()
  await header(loggedIn('one'))
  expect(output()).not.toContain('access_token-corp')
})
