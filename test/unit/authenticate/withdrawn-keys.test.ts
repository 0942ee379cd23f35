import { beforeEach, describe, expect, it } from 'vitest'
import type { Authenticator } from '../../../src/authenticate/index.ts'
import { asFailure } from '../../../src/core/index.ts'
import { base64url, published, rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  bearer,
  createWorld,
  ISSUER,
  json,
  JWKS_URL,
  provider,
  type World,
} from '../../support/authenticate/world.ts'

const old = await rsaKey({ kid: 'old' })
const fresh = await rsaKey({ kid: 'fresh' })
const strange = await rsaKey()

let world: World
let authenticator: Authenticator
let serial = 0

const claims = () => ({
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'alice',
  exp: world.nowSeconds() + 7200,
  jti: String(serial++),
})
const token = (key: TestKey, header: object = {}) =>
  signed(key, { alg: 'RS256', kid: key.jwk.kid, ...header }, claims())
/** A caller without cached results. */
const stranger = (name: number | string) => token(published(strange, { kid: `stranger-${name}` }))
const statusOf = async (text: string): Promise<number> => {
  try {
    await authenticator.authenticate(bearer(text), '')
    return 200
  } catch (error) {
    return asFailure(error).status
  }
}
const all = <T>(count: number, each: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => each(index)))
const statusesOf = (texts: readonly string[]) => all(texts.length, (index) => statusOf(texts[index] ?? ''))
/** No refresh is left for the next 5 s. */
async function useUp(): Promise<void> {
  expect(await statusOf(await stranger('a'))).toBe(401)
  expect(await statusOf(await stranger('d'))).toBe(503)
}

beforeEach(async () => {
  world = createWorld()
  world.serveKeys([old])
  authenticator = world.authenticator([provider()])
  expect(await statusOf(await token(old))).toBe(200)
})

describe('a key that was withdrawn', () => {
  it('is 401 for all tokens that it signed, by one fetch in 30 s', async () => {
    world.serveKeys([fresh])
    expect(await statusOf(await token(fresh))).toBe(200)
    expect(new Set(await statusesOf(await all(100, () => token(old))))).toEqual(new Set([401]))
    for (let count = 0; count < 100; count++) expect(await statusOf(await token(old))).toBe(401)
    const asked = world.asked(JWKS_URL)
    expect(asked).toBeLessThanOrEqual(3)
    world.clock.advance(29_999)
    expect(await statusOf(await token(old))).toBe(401)
    expect(world.asked(JWKS_URL)).toBe(asked)
    world.clock.advance(1)
    expect(await statusOf(await token(old))).toBe(401)
    expect(world.asked(JWKS_URL)).toBe(asked + 1)
  })

  it('is 503 only until any fetch has looked for it', async () => {
    await useUp()
    const early = await token(published(old, { kid: 'gone' }))
    expect(await statusOf(early)).toBe(503)
    world.clock.advance(5000)
    expect(await statusOf(await stranger('e'))).toBe(401)
    const asked = world.asked(JWKS_URL)
    expect(await statusOf(early)).toBe(401)
    expect(await statusOf(await token(published(old, { kid: 'gone' })))).toBe(401)
    expect(world.asked(JWKS_URL)).toBe(asked)
  })

  it('is looked for by the refresh in the background, too', async () => {
    await useUp()
    world.clock.advance(600_000)
    expect(await statusOf(await token(old))).toBe(200)
    await new Promise((resolve) => setImmediate(resolve))
    const asked = world.asked(JWKS_URL)
    expect(await statusOf(await stranger('d'))).toBe(401)
    expect(world.asked(JWKS_URL)).toBe(asked)
  })
})

describe('unknown key ids', () => {
  it('all at once cost one fetch, and another one 5 s later for those that it did not look for', async () => {
    const before = world.asked(JWKS_URL)
    const names = await all(200, stranger)
    expect(new Set(await statusesOf(names))).toEqual(new Set([401, 503]))
    expect(world.asked(JWKS_URL)).toBe(before + 1)
    world.clock.advance(5000)
    expect(await statusOf(names[0] ?? '')).toBe(401)
    expect(await statusOf(names[1] ?? '')).toBe(401)
    expect(new Set(await statusesOf(names))).toEqual(new Set([401]))
    expect(world.asked(JWKS_URL)).toBe(before + 2)
  })

  it('seen during a fetch are looked up by another fetch, which may return them', async () => {
    const answer = Promise.withResolvers<void>()
    const list = json({ keys: [old.jwk] })
    world.on(JWKS_URL, async () => {
      await answer.promise
      world.serveKeys([old, fresh])
      return list
    })
    const other = statusOf(await stranger('x'))
    await new Promise((resolve) => setImmediate(resolve))
    const late = statusOf(await token(fresh))
    await new Promise((resolve) => setImmediate(resolve))
    answer.resolve()
    expect(await Promise.all([other, late])).toEqual([401, 503])
    world.clock.advance(5000)
    expect(await statusOf(await token(fresh))).toBe(200)
  })
})

describe('tokens that cannot be good', () => {
  const unsigned = (kid: string, signature: string) =>
    `${base64url({ alg: 'RS256', kid })}.${base64url(claims())}.${base64url(signature)}`

  it.each([
    ['no signature', ''],
    ['a short signature', 'x'.repeat(64)],
    ['a signature longer than any', 'x'.repeat(1025)],
  ])('because of %s delay no rotation: nothing is fetched for them', async (_name, signature) => {
    const before = world.asked(JWKS_URL)
    for (let count = 0; count < 20; count++) expect(await statusOf(unsigned(`unknown-${count}`, signature))).toBe(401)
    expect(world.asked(JWKS_URL)).toBe(before)
    world.serveKeys([fresh])
    expect(await statusOf(await token(fresh))).toBe(200)
  })

  it.each<[string, object]>([
    ['another algorithm', { alg: 'PS512' }],
    ['encryption', { use: 'enc' }],
    ['signing only', { key_ops: ['sign'] }],
    ['other hands: it is private', { d: 'AQAB' }],
  ])('because their key is listed for %s never fetch', async (_name, members) => {
    world.serveKeys([published(old, members)])
    authenticator = world.authenticator([provider()])
    expect(await statusOf(await token(old))).toBe(401)
    for (let count = 0; count < 5; count++) expect(await statusOf(await token(old))).toBe(401)
    expect(world.asked(JWKS_URL)).toBe(2)
  })
})
