import { afterEach, describe, expect, it } from 'vitest'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig } from '../../support/obtain/harness.ts'
import { createUpstreamTokens, OURS, use } from '../../support/obtain/upstream-tokens.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const from = (claims: Readonly<Record<string, string>>, issuer = OURS) => createCaller({ issuer, claims })

describe.each([true, false])('an upstream token that is wanted (by name: %s)', (isExplicit) => {
  const open = () => {
    const clock = createManualClock()
    const upstreamTokens = createUpstreamTokens(() => clock.now())
    const rig = createRig(sockets, { clock, upstreamTokens })
    return { tokens: upstreamTokens, ...rig.upstreamInject(use({ isExplicit })) }
  }

  it.each([
    ['id-jag', 'no_upstream_session'],
    ['client_credentials', 'no_user'],
    ['workload', 'no_user'],
  ])('is none for a token of the grant %s, which no 401 mends', (gty, code) => {
    const { obtain, tokens } = open()
    expect(() => obtain(from({ gty }))).toThrow(expect.objectContaining({ code, status: 403 }))
    expect(tokens.asked).toEqual([])
  })

  it('is the session’s where there is one, whatever the grant is said to be', async () => {
    const { header } = open()
    expect(await header(from({ gty: 'id-jag', tsid: 'one', client_id: 'editor' }))).toContain('-corp-one-0')
  })
})
