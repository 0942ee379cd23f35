import { createPrivateKey } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { afterEach, expect, it } from 'vitest'
import { basic, ID_JAG, JOB, JWT_BEARER } from '../../../support/authserver/grants/rig.ts'
import { postForm } from '../../../support/authserver/rig.ts'
import { createSockets } from '../../../support/sockets.ts'
import { startIdp } from '../../../support/upstreams/idp.ts'
import { INITIALIZE, post } from '../../../support/e2e/lab.ts'
import { newSigningKey } from '../../../support/e2e/authserver/fleet.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const key = newSigningKey()

async function open() {
  const idp = await startIdp(sockets)
  const world = await openWorld(sockets, {
    spec: {
      signingKeySecretRefs: [{ name: 'as', key: 'signing' }],
      workloads: [{ issuer: idp.url, caBundleRef: { name: 'idp', key: 'ca' }, match: "claims.sub == 'job'" }],
      identityAssertions: { issuers: [{ issuerUrl: idp.url, caBundleRef: { name: 'idp', key: 'ca' } }] },
      clients: [
        {
          clientId: JOB.id,
          clientSecretRef: { name: 'clients', key: 'job' },
          grantTypes: ['client_credentials', JWT_BEARER],
        },
      ],
    },
    files: () => ({ 'secrets/as/signing': key, 'secrets/clients/job': JOB.secret }),
  })
  const tokenFor = async (form: Readonly<Record<string, string>>) => {
    const answer = await postForm(`${world.url}/oauth/token`, form, basic(JOB))
    return ((await answer.json()) as { access_token: string }).access_token
  }
  const asserted = async (resource: string) => {
    const now = Math.floor(Date.now() / 1_000)
    const said = { iss: idp.url, sub: 'alice', aud: world.url, client_id: JOB.id, resource, jti: 'one' }
    const assertion = await idp.key.sign({ ...said, iat: now, exp: now + 300 }, { typ: ID_JAG })
    return tokenFor({ grant_type: JWT_BEARER, assertion })
  }
  const workload = async (resource: string) => {
    const now = Math.floor(Date.now() / 1_000)
    const said = { iss: idp.url, sub: 'job', aud: `${world.url}/oauth/token`, iat: now, exp: now + 300 }
    const assertion = await idp.key.sign(said, { typ: 'JWT' })
    const answer = await postForm(`${world.url}/oauth/token`, { grant_type: JWT_BEARER, assertion, resource })
    return ((await answer.json()) as { access_token: string }).access_token
  }
  const own = (resource: string) => tokenFor({ grant_type: 'client_credentials', resource })
  const call = async (path: string, token: string) => {
    const response = await post(`${world.url}${path}`, INITIALIZE, { authorization: `Bearer ${token}` })
    return [response.status, await response.text(), response.headers.get('www-authenticate')] as const
  }
  return { world, asserted, own, workload, call }
}

it('a token without a login is good where nothing of a login is needed, and elsewhere says why it is not', async () => {
  const { world, asserted, own, workload, call } = await open()
  const resource = (path: string) => `${world.url}${path}`
  for (const give of [asserted, own, workload]) expect((await call('/mcp', await give(resource('/mcp'))))[0]).toBe(200)
  // For its resource alone.
  expect((await call('/inject', await own(resource('/mcp'))))[0]).toBe(401)
  const [status, text, challenge] = await call('/inject', await asserted(resource('/inject')))
  expect([status, text]).toEqual([403, expect.stringContaining('no_upstream_session')])
  expect(challenge ?? '').not.toContain('invalid_token')
  for (const give of [own, workload]) {
    const [forOwn, why] = await call('/inject', await give(resource('/inject')))
    expect([forOwn, why]).toEqual([403, expect.stringContaining('no_user')])
  }
})

it('an own token that names another grant, or none, is rejected', async () => {
  const { world, own, call } = await open()
  const token = await own(`${world.url}/mcp`)
  const { gty, ...claims } = decodeJwt(token)
  const { alg = '', ...header } = decodeProtectedHeader(token)
  const status = async (more: object) => {
    const made = new SignJWT({ ...claims, ...more }).setProtectedHeader({ alg, ...header })
    return (await call('/mcp', await made.sign(createPrivateKey(key))))[0]
  }
  expect(await status({ gty })).toBe(200)
  for (const wrong of [{}, { gty: 'password' }, { gty: 'toString' }, { gty: [gty] }, { gty, tsid: 1 }])
    expect(await status(wrong)).toBe(401)
})
