import { decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, it } from 'vitest'
import { readKeySet } from '../../../src/oauth/key-set.ts'
import type { Provider } from '../../../src/authenticate/provider.ts'
import type { UnverifiedJwt } from '../../../src/oauth/token-shape.ts'
import { createVerifyJwt } from '../../../src/authenticate/verify-jwt.ts'

it.each([
  [1_000, 'accepted'],
  [70_000, 'refused'],
])('claims are looked at again after keys that took %i ms: %s', async (tookMs, kind) => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256' }
  const keys = readKeySet({ keys: [jwk] }) ?? []
  const claims = { iss: 'https://idp', aud: 'us', sub: 'alice', exp: 60 }
  const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'k' }).sign(privateKey)
  let nowMs = 0
  const slow = () => {
    nowMs += tookMs
    return Promise.resolve(keys)
  }
  const rules = {
    issuer: 'https://idp',
    audience: 'us',
    tolerance: { expiredSeconds: 0, earlySeconds: 0 },
    audienceClaim: 'aud',
    isIntrospected: false,
    requireAudience: true,
  }
  const store = { ready: () => undefined, keys: slow, refreshed: () => Promise.resolve(undefined) }
  const provider = { name: 'idp', issuer: 'https://idp', jwtRules: rules, keys: store } as unknown as Provider
  const jwt = { header: decodeProtectedHeader(token), payload: decodeJwt(token) } as unknown as UnverifiedJwt
  const verdict = await createVerifyJwt([provider], { now: () => nowMs })(token, jwt, undefined)
  expect(verdict.kind).toBe(kind)
})
