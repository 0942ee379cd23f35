import { UnsecuredJWT } from 'jose'
import { expect, test } from 'vitest'
import { credentialExpiries } from '../../../src/oauth/index.ts'
import { createTestSecrets, START_MS } from '../../support/ports.ts'

const SECONDS = START_MS / 1_000

test.each<[string, object, number]>([
  ['iat', { iat: SECONDS, exp: SECONDS + 3_600 }, 3_240],
  ['nbf', { nbf: SECONDS, exp: SECONDS + 3_600 }, 3_240],
  // As a JWT-SVID may be: it must not count as overdue for all of a short life.
  ['neither', { exp: SECONDS + 3_600 }, 3_540],
  ['a life of a year', { iat: SECONDS, exp: SECONDS + 365 * 86_400 }, 364 * 86_400],
])('a token with %s has to be renewed in time', (_what, claims, seconds) => {
  const files = createTestSecrets({ 'file/token': new UnsecuredJWT({ ...claims }).encode() })
  const auth = { method: 'tokenFile', tokenFile: { type: 'jwt-spiffe' } } as const
  const [end] = credentialExpiries(auth, { secrets: files, tokenFile: () => files.get('file/token') })
  expect(end && end.renewByMs - START_MS).toBe(seconds * 1_000)
})
