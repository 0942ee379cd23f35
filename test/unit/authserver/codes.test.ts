import { afterEach, expect, it } from 'vitest'
import { type CodeGrant, createCodes } from '../../../src/authserver/tokens/codes.ts'
import { createMemoryStore, createSeal, createSealingKeys, StoreError } from '../../../src/storage/index.ts'
import { createManualClock, createRecordingLog, createTestSecrets } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { HMAC, logIn, REDIRECT, redeem, register, startRig } from '../../support/authserver/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const LIFESPAN_MS = 60_000

const GRANT: CodeGrant = {
  clientId: 'client',
  redirectUri: REDIRECT,
  isRedirectGiven: true,
  challenge: 'c'.repeat(43),
  scope: [],
  resource: 'https://mcp.example.com/mcp',
  subject: 'user-1',
  authenticatedAtMs: 0,
  tsid: 't'.repeat(22),
  logins: [],
}

/** The codes of so many replicas on one store. */
function openReplicas(count: number) {
  const clock = createManualClock()
  const store = createMemoryStore({ clock, log: createRecordingLog() })
  const seal = createSeal(createSealingKeys([createTestSecrets({ 'as/hmac': HMAC }).get('as/hmac')]), clock)
  return Array.from({ length: count }, () => createCodes({ ...store }, seal, { clock, lifespanMs: LIFESPAN_MS }))
}

// The order in which a race is lost, made by hand: all have looked before one of them spends.
it.each([1, 2, 3])('a code that %i replicas have found unspent is redeemed at one of them', async (count) => {
  const replicas = openReplicas(count)
  const code = (await replicas[0]?.issue(GRANT)) ?? ''
  const found = await Promise.all(
    // Twice at each, as two requests at once would.
    [...replicas, ...replicas].map(async (codes) => ({ codes, code: await codes.find(code) })),
  )
  expect(found.map((one) => one.code?.isSpent)).toEqual(found.map(() => false))
  const redeemed: boolean[] = []
  for (const one of found) if (one.code !== undefined) redeemed.push(await one.codes.spend(one.code))
  expect(redeemed).toEqual(found.map((_, index) => index === 0))
})

it('tokens of a code are issued although the issuance cannot be recorded, and the code is used up', async () => {
  let writes = 0
  const rig = await startRig(sockets, {
    store: (ports) => {
      const memory = createMemoryStore(ports)
      return {
        ...memory,
        async put(key, ...rest) {
          if (key.startsWith('code:') && (writes += 1) > 1) throw new StoreError('unavailable')
          return memory.put(key, ...rest)
        },
      }
    },
  })
  const client = await register(rig)
  const { answer, pkce } = await logIn(rig, client)
  const code = answer.get('code') ?? ''
  expect((await redeem(rig, client, code, pkce)).status).toBe(200)
  expect(writes).toBe(2)
  const again = await redeem(rig, client, code, pkce)
  expect([again.status, await again.json()]).toMatchObject([400, { error: 'invalid_grant' }])
})
