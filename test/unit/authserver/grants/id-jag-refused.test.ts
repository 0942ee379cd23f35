import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { createKey } from '../../../support/upstreams/idp.ts'
import { register, type Rig } from '../../../support/authserver/rig.ts'
import {
  ask,
  basic,
  causes,
  ID_JAG,
  jag,
  jagClaims,
  JOB,
  JWT_BEARER,
  OTHER,
  show,
  startGrants,
} from '../../../support/authserver/grants/rig.ts'
import { WRONG_ID_JAGS as WRONG } from '../../../support/authserver/grants/wrong-id-jags.ts'

const sockets = createSockets()
let rig: Rig
beforeAll(async () => {
  rig = await startGrants(sockets)
})
afterEach(() => rig.clock.advance(31_000))
afterAll(() => sockets.closeAll())

const REFUSED = { status: 400, body: { error: 'invalid_grant', error_description: 'the assertion is not accepted' } }
describe('an identity assertion is refused', () => {
  it('in more ways than sixty', () => {
    expect(WRONG.length).toBeGreaterThanOrEqual(60)
    expect(new Set(WRONG.map(({ name }) => name)).size).toBe(WRONG.length)
  })

  it.each(WRONG)('with $name, and only the log says why', async ({ make, why }) => {
    const before = causes(rig).length
    expect(await show(rig, await make(rig))).toEqual(REFUSED)
    expect(causes(rig).slice(before)).toEqual([expect.stringMatching(why)])
    // The same, put right, is taken.
    expect((await show(rig, await jag(rig))).status).toBe(200)
  })

  it('of a client that is a public one', async () => {
    const client = await register(rig, {
      token_endpoint_auth_method: 'none',
      grant_types: [JWT_BEARER],
      redirect_uris: [],
    })
    const assertion = await jag(rig, { client_id: client.id })
    expect(await ask(rig, { grant_type: JWT_BEARER, client_id: client.id, assertion })).toEqual(REFUSED)
    expect(causes(rig).at(-1)).toBe('the client is public')
  })

  it('of another client', async () => {
    expect(await show(rig, await jag(rig), {}, OTHER)).toEqual(REFUSED)
  })

  it('for another resource than the request names', async () => {
    const target = await show(rig, await jag(rig), { resource: 'https://other.example' })
    expect(target).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  })

  it('with nothing left of the scope that is asked for', async () => {
    const none = await show(rig, await jag(rig, { scope: 'mcp:read' }), { scope: 'mcp:write' })
    expect(none).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
  })

  it('twice in one request', async () => {
    const assertion = await jag(rig)
    const body = new URLSearchParams([
      ['grant_type', JWT_BEARER],
      ['assertion', assertion],
      ['assertion', assertion],
    ])
    const response = await fetch(`${rig.issuer}/oauth/token`, { method: 'POST', headers: basic(JOB), body })
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ error: 'invalid_request' }),
    ])
  })
})

const only = async (options: Parameters<typeof startGrants>[1]) => startGrants(sockets, options)

describe('an identity assertion for one of several resources', () => {
  const two = (url: string) => [
    { url: `${url}/mcp`, scopes: ['mcp:read'], providers: [] },
    { url: `${url}/other`, scopes: ['other'], providers: [] },
  ]

  it('names one, or the request does', async () => {
    const several = await only({ resources: two })
    const without = await jag(several, { resource: undefined, scope: undefined })
    expect(await show(several, without)).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
    const named = await show(several, without, { resource: `${several.url}/other` })
    expect(named).toMatchObject({ status: 200, body: { scope: 'other' } })
    const other = await jag(several, { scope: undefined })
    expect(await show(several, other, { resource: `${several.url}/other` })).toEqual(REFUSED)
  })
})

describe('an identity assertion by the keys of its issuer', () => {
  it('is refused where two keys have its kid', async () => {
    const same = await only({})
    same.idp.keys = [same.idp.key.jwk, (await createKey('RS256', same.idp.key.jwk.kid)).jwk]
    expect(await show(same, await jag(same))).toEqual(REFUSED)
    expect(causes(same).at(-1)).toMatch(/several keys/)
  })

  it('is neither taken nor refused while there are none', async () => {
    const away = await only({})
    away.idp.jwks = { status: 500, body: 'down' }
    expect((await show(away, await jag(away))).status).toBe(503)
    expect(causes(away)).toEqual([])
    away.idp.jwks = undefined
    away.clock.advance(60_000)
    expect((await show(away, await jag(away))).status).toBe(200)
  })

  it('is looked at again when the keys were slow: it may have ended', async () => {
    const slow = await only({})
    const { promise, resolve } = Promise.withResolvers<undefined>()
    slow.idp.jwks = { after: promise, body: { keys: slow.idp.keys } }
    const shown = show(slow, await jag(slow))
    await expect
      .poll(() => slow.idp.asked.some(({ path }) => path.includes('keys') || path.includes('jwks')))
      .toBe(true)
    slow.clock.advance(400_000)
    resolve(undefined)
    expect(await shown).toEqual(REFUSED)
    expect(causes(slow).at(-1)).toBe('it has expired')
  })

  it('is known by keys that came after, too', async () => {
    const rotated = await only({})
    expect((await show(rotated, await jag(rotated))).status).toBe(200)
    const key = await createKey('ES256')
    rotated.idp.keys = [key.jwk]
    expect((await show(rotated, await key.sign(jagClaims(rotated), { typ: ID_JAG }))).status).toBe(200)
  })
})

describe('an issuer with a list of clients', () => {
  it('may make assertions for these alone, by the names that it knows them by', async () => {
    const listed = await only({ issuer: { clients: [{ clientId: 'at-the-idp', at: JOB.id }, { clientId: OTHER.id }] } })
    expect((await show(listed, await jag(listed, { client_id: 'at-the-idp' }))).status).toBe(200)
    expect(await show(listed, await jag(listed, { client_id: 'at-the-idp' }), {}, OTHER)).toEqual(REFUSED)
    expect((await show(listed, await jag(listed, { client_id: OTHER.id }), {}, OTHER)).status).toBe(200)
    expect(await show(listed, await jag(listed))).toEqual(REFUSED)
    expect(await show(listed, await jag(listed, { client_id: undefined }))).toEqual(REFUSED)
  })
})

describe('a server without identity assertions', () => {
  it('has no such grant, and says so', async () => {
    const none = await only({ spec: { identityAssertions: undefined, clients: undefined } })
    const client = await register(none, {
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code', JWT_BEARER],
    })
    const answer = await show(none, await jag(none), {}, { id: client.id, secret: client.secret ?? '' })
    expect(answer).toMatchObject({ status: 400, body: { error: 'unsupported_grant_type' } })
    const metadata = (await (await fetch(`${none.issuer}/.well-known/oauth-authorization-server`)).json()) as object
    expect(metadata).toMatchObject({ grant_types_supported: ['authorization_code', 'refresh_token'] })
    expect(metadata).not.toHaveProperty('authorization_grant_profiles_supported')
  })
})
