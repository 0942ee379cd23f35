import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { readKeySet } from '../../../src/oauth/key-set.ts'
import { jwks, rsaKey, signed } from '../../support/authenticate/keys.ts'
import { AUDIENCE, createWorld, ISSUER, json, JWKS_URL, provider, refusalOf } from '../../support/authenticate/world.ts'

/** A modulus of exactly this many bits; its factors are not needed. */
function modulus(bits: number): string {
  const bytes = randomBytes(bits / 8)
  bytes[0] = (bytes[0] ?? 0) | 0x80
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 1
  return bytes.toString('base64url')
}

it.each([
  [2040, false],
  [2048, true],
  [8192, true],
  [8200, false],
])('an RSA key of %i bits is usable: %s', async (bits, isUsable) => {
  const [key] = readKeySet({ keys: [{ kty: 'RSA', n: modulus(bits), e: 'AQAB' }] }) ?? []
  expect((await key?.importFor('RS256')) !== undefined).toBe(isUsable)
})

it('a token that ends while its keys are fetched is not accepted', async () => {
  const world = createWorld()
  const key = await rsaKey({ kid: 'one' })
  world.on(JWKS_URL, () => {
    world.clock.advance(10_000)
    return json(jwks([key]))
  })
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: world.nowSeconds() + 4 }
  const token = await signed(key, { alg: 'RS256', kid: 'one' }, claims)
  expect((await refusalOf(world.authenticator([provider()]), token)).code).toBe('expired_token')
})
