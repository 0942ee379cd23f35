import { afterEach, describe, expect, test } from 'vitest'
import { Failure, Secret } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { json } from '../../support/obtain/harness.ts'
import { createUpstreamTokens, loggedIn, use } from '../../support/obtain/upstream-tokens.ts'
import { idCaller, openXaa, parameter } from '../../support/obtain/xaa-rig.ts'
import { asserted, jag, jwt } from '../../support/obtain/xaa-tokens.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

describe('a session of the authorization server', () => {
  const upstream = { provider: 'corp', kind: 'id_token', issuer: 'https://login.example', isExplicit: true } as const
  const open = async (tokens: readonly string[], reject = true) => {
    let count = 0
    const kinds: string[] = []
    const upstreamTokens = {
      current: (_caller: unknown, _provider: string, kind: string) => {
        kinds.push(kind)
        const token = new Secret(tokens[Math.min(count, tokens.length - 1)] ?? '')
        return Promise.resolve({ token, freshUntilMs: Infinity, expiresAtMs: undefined })
      },
      reject: () => ((count += 1), Promise.resolve(reject)),
      demand: () => Promise.reject(new Error('nothing is demanded')),
    }
    return { kinds, ...(await openXaa(sockets, { upstream, upstreamTokens })) }
  }
  const session = () => createCaller({ issuer: 'https://login.example', claims: { tsid: 'session-1' }, token: 'ours' })

  test('shows the ID token that the upstream gave', async () => {
    const { header, idp, kinds } = await open([jwt({ sub: 'alice', iss: 'corp' })])
    expect(await header(session())).toBe('authorization: Bearer token-of-alice-at-corp')
    expect(idp.received.map((request) => parameter(request, 'subject_token'))).toEqual([
      jwt({ sub: 'alice', iss: 'corp' }),
    ])
    expect(kinds).toEqual(['id_token'])
    expect(JSON.stringify(idp.received)).not.toContain('ours')
  })

  test('has an assertion that ends with its ID token', async () => {
    const clock = createManualClock()
    const upstreamTokens = createUpstreamTokens(() => clock.now())
    upstreamTokens.lifetimeMs = 120_000
    const { stage, obtain, idp } = await openXaa(sockets, {
      upstream: use({ kind: 'id_token' }),
      upstreamTokens,
      clock,
    })
    const caller = loggedIn('one')
    expect(await stage.reject(await obtain(caller))).toBe(true)
    clock.advance(125_000)
    await obtain(caller)
    expect(idp.received.map((request) => parameter(request, 'subject_token'))).toHaveLength(2)
  })

  test('whose ID token is refused shows the next one', async () => {
    const [first, second] = [jwt({ sub: 'a', n: 1 }), jwt({ sub: 'a', iss: 'corp', n: 2 })]
    const { header, idp } = await open([first, second])
    idp.answer = (request, response) =>
      (parameter(request, 'subject_token') === first
        ? json({ error: 'invalid_grant' }, 400)
        : json(asserted(jag({ sub: 'a', act: 'corp' }))))(request, response)
    expect(await header(session())).toBe('authorization: Bearer token-of-a-at-corp')
  })

  test.each([
    ['whose ID tokens are all refused is over', { error: 'invalid_grant' }, 'no_session', 2],
    [
      'that is asked for a stronger login is not refreshed',
      { error: 'insufficient_user_authentication' },
      'insufficient_user_authentication',
      1,
    ],
  ])('%s', async (_what, body, code, requests) => {
    const { header, idp } = await open([jwt({ sub: 'a', n: 1 }), jwt({ sub: 'a', n: 2 })])
    idp.answer = json(body, 400)
    await expect(header(session())).rejects.toMatchObject({ code })
    expect(idp.received).toHaveLength(requests)
  })

  test('of another issuer has no upstream, whatever its token is', async () => {
    const { header, idp } = await open([jwt({ sub: 'a' })])
    await expect(header(idCaller())).rejects.toBeInstanceOf(Failure)
    expect(idp.received).toEqual([])
  })
})
