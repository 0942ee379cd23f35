import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { subjectOf } from '../../../../src/authserver/tokens/subject.ts'
import { createSockets } from '../../../support/sockets.ts'
import { postJson, type Rig } from '../../../support/authserver/rig.ts'
import { causes, claimsOf, JOB, JWT_BEARER } from '../../../support/authserver/grants/rig.ts'
import { jobsOf, jobToken, showToken, startWorkloads } from '../../../support/authserver/grants/workload-rig.ts'

const sockets = createSockets()
let rig: Rig
beforeAll(async () => {
  rig = await startWorkloads(sockets)
})
afterAll(() => sockets.closeAll())

describe('a token of a workload', () => {
  it('gives it a token of its own: no client, no refresh token, nothing of its claims', async () => {
    const said = { email: 'ceo@example.com', groups: ['admins'], tsid: 'x', gty: 'id-jag', client_id: 'x', scope: 'a' }
    const answer = await showToken(rig, await jobToken(rig, said))
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600, scope: 'mcp:read' } })
    expect(Object.keys(answer.body).toSorted()).toEqual(['access_token', 'expires_in', 'scope', 'token_type'])
    const now = Math.floor(rig.clock.now() / 1_000)
    const sub = subjectOf(rig.idp.url, 'repo:acme/reports:ref:refs/heads/main')
    expect(claimsOf(answer)).toEqual({
      iss: rig.issuer,
      sub,
      client_id: sub,
      aud: `${rig.url}/mcp`,
      scope: 'mcp:read',
      gty: 'workload',
      jti: expect.any(String) as string,
      iat: now,
      exp: now + 3600,
    })
  })

  it('may be shown again until it ends, and the log says which entry took it', async () => {
    const token = await jobToken(rig)
    expect([(await showToken(rig, token)).status, (await showToken(rig, token)).status]).toEqual([200, 200])
    const lines = rig.log.lines.map((line) => JSON.parse(line) as object)
    const issued = { message: 'token issued without a login', grant: 'workload' }
    expect(lines).toContainEqual(expect.objectContaining({ ...issued, by: `workloads[0] of ${rig.idp.url}` }))
    expect(rig.log.lines.join('\n')).not.toContain(token)
  })

  it.each<[string, (rig: Rig) => object, object]>([
    ['the token endpoint as aud', ({ issuer }) => ({ aud: `${issuer}/oauth/token` }), {}],
    ['aud as an array of one', ({ issuer }) => ({ aud: [issuer] }), {}],
    ['no typ', () => ({}), { typ: undefined }],
    ['typ JOSE', () => ({}), { typ: 'JOSE' }],
    ['no jti', () => ({ jti: undefined }), {}],
    ['claims that we know nothing of', () => ({ act: { sub: 'x' }, 'kubernetes.io': { namespace: 'x' } }), {}],
  ])('with %s is right', async (_name, more, header) => {
    expect((await showToken(rig, await jobToken(rig, { ...more(rig) }, { ...header }))).status).toBe(200)
  })

  it('is taken beside a client_id, which says nothing and is not asked about', async () => {
    for (const client_id of ['nobody', 'https://client.example/document', JOB.id]) {
      const answer = await showToken(rig, await jobToken(rig), { client_id })
      expect(answer.status).toBe(200)
      expect(claimsOf(answer).client_id).not.toBe(client_id)
    }
  })

  it('has what the first entry gives that is for it', async () => {
    const entries = (idp: Rig['idp']) => [
      jobsOf(idp, { match: "claims.environment == 'production'", lifetime: '5m' }),
      jobsOf(idp, { audiences: ['api://tools'], scopes: [] }),
      jobsOf(idp, { scopes: ['mcp:read', 'mcp:write'] }),
    ]
    const several = await startWorkloads(sockets, { entries })
    const given = async (claims: object) => {
      const { status, body } = await showToken(several, await jobToken(several, { ...claims }))
      return [status, body.scope, body.expires_in]
    }
    expect(await given({ environment: 'production' })).toEqual([200, 'mcp:read', 300])
    expect(await given({ environment: 'test' })).toEqual([200, 'mcp:read mcp:write', 3600])
    expect(await given({})).toEqual([200, 'mcp:read mcp:write', 3600])
    expect(await given({ aud: 'api://tools' })).toEqual([200, undefined, 3600])
    expect(await given({ aud: 'api://tools', repository: 'acme/other' })).toEqual([400, undefined, undefined])
    // All entries of an issuer share a key set.
    expect(several.idp.asked.filter(({ path }) => path.includes('keys') || path.includes('jwks'))).toHaveLength(1)
  })

  it('is neither taken nor refused while its issuer has no keys', async () => {
    const away = await startWorkloads(sockets)
    away.idp.jwks = { status: 500, body: 'down' }
    expect((await showToken(away, await jobToken(away))).status).toBe(503)
    expect(causes(away)).toEqual([])
    away.idp.jwks = undefined
    away.clock.advance(60_000)
    expect((await showToken(away, await jobToken(away))).status).toBe(200)
  })

  it('is looked at again when the keys were slow: it may have ended', async () => {
    const slow = await startWorkloads(sockets)
    const { promise, resolve } = Promise.withResolvers<undefined>()
    slow.idp.jwks = { after: promise, body: { keys: slow.idp.keys } }
    const shown = showToken(slow, await jobToken(slow))
    await expect
      .poll(() => slow.idp.asked.some(({ path }) => path.includes('keys') || path.includes('jwks')))
      .toBe(true)
    slow.clock.advance(400_000)
    resolve(undefined)
    expect((await shown).body.error).toBe('invalid_grant')
    expect(causes(slow).at(-1)).toBe('it has expired')
  })
})

it('the metadata names the grant, and no client can register it: a workload has none', async () => {
  const metadata = (await (await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`)).json()) as object
  expect(metadata).toMatchObject({ grant_types_supported: ['authorization_code', 'refresh_token', JWT_BEARER] })
  expect(metadata).not.toHaveProperty('authorization_grant_profiles_supported')
  const wanted = { token_endpoint_auth_method: 'client_secret_basic', grant_types: [JWT_BEARER], redirect_uris: [] }
  const refused = await postJson(`${rig.issuer}/oauth/register`, wanted)
  expect(await refused.json()).toMatchObject({ error: 'invalid_client_metadata' })
})

it('a resource that no route has is refused at the start', () => {
  const workloads = [jobsOf(rig.idp, { resources: ['https://other.example/mcp'] })]
  expect(() => rig.open({ spec: { ...rig.spec, ...({ workloads } as object) } })).toThrow(
    expect.objectContaining({ code: 'config_error', detail: expect.stringContaining('workloads[0]') as string }),
  )
})
