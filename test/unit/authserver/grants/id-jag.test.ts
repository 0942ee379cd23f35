import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { subjectOf } from '../../../../src/authserver/tokens/subject.ts'
import { createSockets } from '../../../support/sockets.ts'
import { register, type Rig } from '../../../support/authserver/rig.ts'
import {
  ask,
  basic,
  claimsOf,
  ID_JAG,
  jag,
  JOB,
  JWT_BEARER,
  OTHER,
  registerConfidential,
  show,
  startGrants,
} from '../../../support/authserver/grants/rig.ts'

const sockets = createSockets()
let rig: Rig
beforeAll(async () => {
  rig = await startGrants(sockets)
})
afterAll(() => sockets.closeAll())

describe('an identity assertion', () => {
  it('gives its client a token for the resource that it names, without a refresh token', async () => {
    const answer = await show(rig, await jag(rig))
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600 } })
    expect(Object.keys(answer.body).toSorted()).toEqual(['access_token', 'expires_in', 'scope', 'token_type'])
    const now = Math.floor(rig.clock.now() / 1_000)
    expect(claimsOf(answer)).toMatchObject({
      iss: rig.issuer,
      sub: subjectOf(rig.idp.url, 'user-1'),
      aud: `${rig.url}/mcp`,
      client_id: JOB.id,
      scope: 'mcp:read mcp:write',
      email: 'one@example.com',
      gty: 'id-jag',
      iat: now,
      exp: now + 3600,
    })
    expect(claimsOf(answer)).not.toHaveProperty('tsid')
    expect(claimsOf(answer)).not.toHaveProperty('auth_time')
  })

  it('may be shown again until it ends', async () => {
    const assertion = await jag(rig)
    expect([(await show(rig, assertion)).status, (await show(rig, assertion)).status]).toEqual([200, 200])
  })

  it.each<[string, Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>]>([
    ['aud as an array of one', { aud: ['OURS'] }, {}],
    ['resource as an array of one', { resource: ['RESOURCE'] }, {}],
    ['resource with a trailing slash', { resource: 'RESOURCE/' }, {}],
    ['no resource where there is one', { resource: undefined }, {}],
    ['typ with its prefix, in capitals', {}, { typ: `application/${ID_JAG.toUpperCase()}` }],
    ['nbf that has come', { nbf: 1 }, {}],
    ['claims that we know nothing of', { tenant: 'x', groups: ['a'], act: { sub: 'agent' } }, {}],
    ['auth_time', { auth_time: 1_700_000_000 }, {}],
  ])('with %s is right', async (_name, claims, header) => {
    const placed = JSON.parse(
      JSON.stringify(claims).replaceAll('OURS', rig.issuer).replaceAll('RESOURCE', `${rig.url}/mcp`),
    ) as Record<string, unknown>
    const gone = Object.fromEntries(Object.entries(claims).filter(([, value]) => value === undefined))
    expect((await show(rig, await jag(rig, { ...placed, ...gone }, header))).status).toBe(200)
  })

  it('passes on auth_time and what tokens take over of a user, and nothing else', async () => {
    const more = {
      auth_time: 1_700_000_000,
      groups: ['a'],
      tenant: 'x',
      act: { sub: 'agent' },
      tsid: 'x',
      gty: 'x',
      cid: 'x',
    }
    const claims = claimsOf(await show(rig, await jag(rig, more)))
    expect(claims).toMatchObject({ auth_time: 1_700_000_000, groups: ['a'], gty: 'id-jag' })
    for (const name of ['tenant', 'act', 'tsid', 'cid']) expect(claims).not.toHaveProperty(name)
  })

  it.each([
    ['mcp:read', undefined, 'mcp:read'],
    ['mcp:read', 'mcp:read mcp:write', 'mcp:read'],
    ['mcp:read mcp:write elsewhere', undefined, 'mcp:read mcp:write'],
    [undefined, 'mcp:write', 'mcp:write'],
    [undefined, undefined, 'mcp:read mcp:write'],
  ])('with scope %s, asked for %s, gives %s', async (scope, asked, granted) => {
    const answer = await show(rig, await jag(rig, { scope }), asked === undefined ? {} : { scope: asked })
    expect([answer.status, answer.body.scope]).toEqual([200, granted])
  })

  it('gives a client no more than its own bounds', async () => {
    const answer = await show(rig, await jag(rig, { client_id: OTHER.id }), {}, OTHER)
    expect(answer).toMatchObject({ status: 200, body: { scope: 'mcp:read', expires_in: 300 } })
  })

  it('is taken from a client that registered for it, by its secret in either place', async () => {
    const client = await registerConfidential(rig)
    const assertion = await jag(rig, { client_id: client.id })
    const secret = client.secret ?? ''
    expect((await show(rig, assertion, {}, { id: client.id, secret })).status).toBe(200)
    const form = { grant_type: JWT_BEARER, assertion, client_id: client.id, client_secret: secret }
    expect((await ask(rig, form)).status).toBe(200)
  })

  it('is of no use to a client that did not register the grant, or with a wrong secret', async () => {
    const client = await register(rig, { token_endpoint_auth_method: 'client_secret_basic' })
    const assertion = await jag(rig, { client_id: client.id })
    const as = { id: client.id, secret: client.secret ?? '' }
    expect(await show(rig, assertion, {}, as)).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
    const wrong = await show(rig, await jag(rig), {}, { ...JOB, secret: OTHER.secret })
    expect(wrong).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
    const without = await ask(rig, { grant_type: JWT_BEARER, client_id: JOB.id, assertion: await jag(rig) })
    expect(without).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  it('is named in the metadata, and nowhere else is a grant that is not served', async () => {
    const metadata = (await (await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`)).json()) as object
    expect(metadata).toMatchObject({
      grant_types_supported: ['authorization_code', 'refresh_token', JWT_BEARER, 'client_credentials'],
      authorization_grant_profiles_supported: ['urn:ietf:params:oauth:grant-profile:id-jag'],
    })
  })

  it('needs a client', async () => {
    expect((await ask(rig, { grant_type: JWT_BEARER, assertion: await jag(rig) }, {})).body.error).toBe(
      'invalid_request',
    )
    expect((await ask(rig, { grant_type: JWT_BEARER }, basic(JOB))).body.error).toBe('invalid_request')
  })
})
