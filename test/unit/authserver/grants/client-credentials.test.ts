import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { subjectOf } from '../../../../src/authserver/tokens/subject.ts'
import { createSockets } from '../../../support/sockets.ts'
import { register, type Rig } from '../../../support/authserver/rig.ts'
import { ask, basic, claimsOf, JOB, JWT_BEARER, OTHER, startGrants } from '../../../support/authserver/grants/rig.ts'

const GRANT = { grant_type: 'client_credentials' }

const sockets = createSockets()
let rig: Rig
beforeAll(async () => {
  rig = await startGrants(sockets)
})
afterAll(() => sockets.closeAll())

/** The response to the client `ci` with an assertion signed by this key. */
async function shownBy(at: Rig, key: KeyObject, header: Readonly<Record<string, string>> = {}) {
  const now = Math.floor(at.clock.now() / 1_000)
  const assertion = await new SignJWT({ iss: 'ci', sub: 'ci', aud: at.issuer, iat: now, exp: now + 60 })
    .setJti(randomUUID())
    .setProtectedHeader({ alg: 'ES256', ...header })
    .sign(key)
  const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
  return ask(at, { ...GRANT, client_assertion_type: type, client_assertion: assertion })
}

describe('a client of the configuration', () => {
  it('gets a token for itself, without a refresh token and without scopes that it does not have', async () => {
    const answer = await ask(rig, GRANT, basic(JOB))
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600 } })
    expect(Object.keys(answer.body).toSorted()).toEqual(['access_token', 'expires_in', 'token_type'])
    const claims = claimsOf(answer)
    expect(claims).toMatchObject({
      sub: subjectOf(rig.issuer, JOB.id),
      aud: `${rig.url}/mcp`,
      client_id: JOB.id,
      gty: 'client_credentials',
    })
    for (const name of ['tsid', 'auth_time', 'scope']) expect(claims).not.toHaveProperty(name)
  })

  it('gets its scopes and lifetime', async () => {
    const answer = await ask(rig, GRANT, basic(OTHER))
    expect(answer).toMatchObject({ status: 200, body: { scope: 'mcp:read', expires_in: 300 } })
    const more = await ask(rig, { ...GRANT, scope: 'mcp:read mcp:write' }, basic(OTHER))
    expect(more).toMatchObject({ status: 200, body: { scope: 'mcp:read' } })
    const none = await ask(rig, { ...GRANT, scope: 'mcp:write' }, basic(OTHER))
    expect(none).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
  })

  it('is let in by the secret that is there now', async () => {
    expect((await ask(rig, GRANT, basic({ ...JOB, secret: `${JOB.secret}x` }))).body.error).toBe('invalid_client')
    expect((await ask(rig, { ...GRANT, client_id: JOB.id })).body.error).toBe('invalid_client')
    expect((await ask(rig, GRANT, basic({ ...JOB, id: OTHER.id }))).body.error).toBe('invalid_client')
    expect((await ask(rig, { ...GRANT, client_id: JOB.id, client_secret: JOB.secret })).status).toBe(200)
  })

  it('that signs assertions is let in by its keys', async () => {
    const [pair, others] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }))
    if (pair === undefined || others === undefined) throw new Error('no keys')
    const publicKeys = [pair.publicKey.export({ type: 'spki', format: 'pem' }).toString()]
    const signing = await startGrants(sockets, { spec: { clients: [{ clientId: 'ci', publicKeys }] } })
    expect((await shownBy(signing, pair.privateKey)).status).toBe(200)
    expect((await shownBy(signing, others.privateKey)).body.error).toBe('invalid_client')
    const other = await ask(signing, { grant_type: JWT_BEARER, assertion: 'x' }, basic({ id: 'ci', secret: 'x' }))
    expect(other.body.error).toBe('invalid_client')
  })

  it('is let in by each of several keys of one kind while they are changed, whatever kid it says', async () => {
    const pairs = [0, 1, 2].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }))
    const publicKeys = pairs
      .slice(0, 2)
      .map(({ publicKey }) => publicKey.export({ type: 'spki', format: 'pem' }).toString())
    const signing = await startGrants(sockets, { spec: { clients: [{ clientId: 'ci', publicKeys }] } })
    const statuses = []
    for (const { privateKey } of pairs) {
      for (const header of [{}, { kid: 'as the client calls it' }])
        statuses.push((await shownBy(signing, privateKey, header)).status)
    }
    expect(statuses).toEqual([200, 200, 200, 200, 401, 401])
  })

  it('has the grants that are listed', async () => {
    const clientSecretRef = { name: 'clients', key: JOB.id }
    const clients = [
      { clientId: JOB.id, clientSecretRef, grantTypes: [JWT_BEARER] },
      { clientId: 'another', clientSecretRef },
    ]
    const listed = await startGrants(sockets, { spec: { clients } })
    expect((await ask(listed, GRANT, basic(JOB))).body.error).toBe('unauthorized_client')
    const bearer = { grant_type: JWT_BEARER, assertion: 'x' }
    expect((await ask(listed, bearer, basic({ ...JOB, id: 'another' }))).body.error).toBe('unauthorized_client')
  })

  it('gets tokens for its resources', async () => {
    const one = (url: string) => ({ url, scopes: [], providers: [] })
    const several = await startGrants(sockets, { resources: (url) => [one(`${url}/mcp`), one(`${url}/other`)] })
    expect((await ask(several, GRANT, basic(JOB))).body.error).toBe('invalid_target')
    const other = `${several.url}/other`
    expect(claimsOf(await ask(several, { ...GRANT, resource: other }, basic(JOB))).aud).toBe(other)
    const clients = several.spec.clients?.map((client) => ({ ...client, resources: [other] }))
    several.open({ spec: { ...several.spec, clients } })
    expect(claimsOf(await ask(several, GRANT, basic(JOB))).aud).toBe(other)
    const not = await ask(several, { ...GRANT, resource: `${several.url}/mcp` }, basic(JOB))
    expect(not.body.error).toBe('invalid_target')
  })
})

describe('a client that registered itself', () => {
  it('gets nothing for itself: anybody can register', async () => {
    const client = await register(rig, {
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code', 'client_credentials', 'refresh_token'],
    })
    expect(client.grantTypes).toEqual(['authorization_code', 'refresh_token'])
    const answer = await ask(rig, GRANT, basic({ id: client.id, secret: client.secret ?? '' }))
    expect(answer).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
  })
})

it('a resource that no route has is refused at the start', () => {
  const clients = rig.spec.clients?.map((client) => ({ ...client, resources: ['https://other.example/mcp'] }))
  expect(() => rig.open({ spec: { ...rig.spec, clients } })).toThrow(
    expect.objectContaining({ code: 'config_error', detail: expect.stringContaining(JOB.id) as string }),
  )
})
