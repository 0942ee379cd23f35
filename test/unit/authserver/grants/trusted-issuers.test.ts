import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMemoryStore, type Store, StoreError } from '../../../../src/storage/index.ts'
import { createSockets } from '../../../support/sockets.ts'
import type { Rig, RigOptions } from '../../../support/authserver/rig.ts'
import { causes, claimsOf, trusting } from '../../../support/authserver/grants/rig.ts'
import { jobsOf, jobToken, showToken, startWorkloads } from '../../../support/authserver/grants/workload-rig.ts'

const sockets = createSockets()
afterAll(() => sockets.closeAll())

const SUBJECT = 'system:serviceaccount:agents:"nightly"'
const REFUSED = { status: 400, body: { error: 'invalid_grant', error_description: 'the assertion is not accepted' } }

/** An issuer as manifests of the other group have it, with one subject for one of two resources. */
async function startTrusting(grant: object = {}, options: RigOptions = {}): Promise<Rig> {
  const resource = (url: string, name: string) => ({ url: `${url}/${name}`, scopes: ['mcp:read'], providers: [] })
  const rig = await startWorkloads(sockets, {
    ...options,
    resources: (url) => [resource(url, 'mcp'), resource(url, 'other')],
  })
  const { issuerUrl, caBundleRef } = trusting(rig.idp)
  const subjectBindings = [{ subject: SUBJECT, allowedResources: [`${rig.url}/mcp`] }]
  const jwtBearerGrant = { maxAssertionAge: '10m', subjectBindings, ...grant }
  const trustedIssuers = [{ issuerUrl, caBundleRef, allowPrivateIPs: false, jwtBearerGrant }]
  rig.open({ spec: { ...rig.spec, workloads: undefined, ...({ trustedIssuers } as object) } })
  return rig
}

/** An assertion as the other program takes it. */
const assertionOf = (rig: Rig, claims: object = {}) =>
  jobToken(rig, { sub: SUBJECT, aud: `${rig.issuer}/oauth/token`, jti: undefined, ...claims })

describe('an issuer of `trustedIssuers`', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await startTrusting()
  })

  it('gives a subject tokens for its resources, without scopes, that end with the assertion', async () => {
    const answer = await showToken(rig, await assertionOf(rig, { exp: Math.floor(rig.clock.now() / 1_000) + 90 }))
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 90 } })
    expect(claimsOf(answer)).toMatchObject({ aud: `${rig.url}/mcp`, gty: 'workload' })
    expect(claimsOf(answer)).not.toHaveProperty('scope')
    const other = await showToken(rig, await assertionOf(rig, { jti: 'a' }), { resource: `${rig.url}/other` })
    expect(other).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  })

  it.each([
    ['another subject', { sub: `${SUBJECT}x` }, /^no entry of workloads matches/],
    ['our issuer as aud, where nothing is listed', { aud: 'ISSUER' }, /^aud must be this server only$/],
    ['a life of more than its bound', { iat: 1 }, /^its lifetime is more than 10 minutes$/],
  ])('refuses %s', async (_name, claims, why) => {
    const said = JSON.parse(JSON.stringify(claims).replace('ISSUER', rig.issuer)) as object
    expect(await showToken(rig, await assertionOf(rig, { jti: 'b', ...said }))).toEqual(REFUSED)
    expect(causes(rig).at(-1)).toMatch(why)
  })

  it.each([
    ['by its jti', { jti: 'once' }],
    ['alone', {}],
  ])('takes an assertion once, %s', async (_name, claims) => {
    rig.clock.advance(1_000)
    const assertion = await assertionOf(rig, claims)
    expect((await showToken(rig, assertion)).status).toBe(200)
    expect(await showToken(rig, assertion)).toEqual(REFUSED)
    expect(causes(rig).at(-1)).toBe('it was used before')
  })

  it('takes it once after a restart, too', async () => {
    const assertion = await assertionOf(rig, { jti: 'kept' })
    expect((await showToken(rig, assertion)).status).toBe(200)
    const { issuerUrl, caBundleRef } = trusting(rig.idp)
    const workloads = [
      { ...jobsOf(rig.idp, { match: 'true', singleUse: true }), issuer: issuerUrl, caBundleRef, audiences: undefined },
    ]
    rig.open({ spec: { ...rig.spec, ...({ workloads } as object) } })
    expect(await showToken(rig, assertion, { resource: `${rig.url}/mcp` })).toEqual(REFUSED)
  })
})

it('`acceptedAudiences` replace the token endpoint', async () => {
  const rig = await startTrusting({ acceptedAudiences: ['https://tools.example.com'] })
  expect((await showToken(rig, await assertionOf(rig, { aud: 'https://tools.example.com' }))).status).toBe(200)
  expect(await showToken(rig, await assertionOf(rig))).toEqual(REFUSED)
})

it('while the store is down nothing that counts once is taken', async () => {
  let isDown = false
  const store = (parts: Parameters<typeof createMemoryStore>[0]): Store => {
    const memory = createMemoryStore(parts)
    const putIfAbsent: Store['putIfAbsent'] = (...asked) =>
      isDown ? Promise.reject(new StoreError('unavailable')) : memory.putIfAbsent(...asked)
    return Object.assign(Object.create(memory) as Store, { putIfAbsent })
  }
  const rig = await startTrusting({}, { store })
  isDown = true
  expect((await showToken(rig, await assertionOf(rig))).status).toBe(503)
  isDown = false
  expect((await showToken(rig, await assertionOf(rig))).status).toBe(200)
})
