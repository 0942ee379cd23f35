import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import type { Rig } from '../../../support/authserver/rig.ts'
import {
  ask,
  basic,
  causes,
  ID_JAG,
  jag,
  JOB,
  JWT_BEARER,
  show,
  trusting,
} from '../../../support/authserver/grants/rig.ts'
import {
  jobClaims,
  jobsOf,
  jobToken,
  showToken,
  startWorkloads,
} from '../../../support/authserver/grants/workload-rig.ts'
import { WRONG_WORKLOADS as WRONG } from '../../../support/authserver/grants/wrong-workloads.ts'

const sockets = createSockets()
let rig: Rig
beforeAll(async () => {
  rig = await startWorkloads(sockets)
})
afterEach(() => rig.clock.advance(31_000))
afterAll(() => sockets.closeAll())

const REFUSED = { status: 400, body: { error: 'invalid_grant', error_description: 'the assertion is not accepted' } }

describe('a token of a workload is refused', () => {
  it('in more ways than sixty', () => {
    expect(WRONG.length).toBeGreaterThanOrEqual(60)
    expect(new Set(WRONG.map(({ name }) => name)).size).toBe(WRONG.length)
  })

  it.each(WRONG)('with $name, and only the log says why', async ({ make, why }) => {
    const before = causes(rig).length
    expect(await showToken(rig, await make(rig))).toEqual(REFUSED)
    expect(causes(rig).slice(before)).toEqual([expect.stringMatching(why)])
    // The same, put right, is taken.
    expect((await showToken(rig, await jobToken(rig))).status).toBe(200)
  })

  it('where its expression costs too much, though another entry fits', async () => {
    const costly = 'claims.list.all(a, claims.list.all(b, a + b != 1.5))'
    const entries = (idp: Rig['idp']) => [jobsOf(idp, { match: costly }), jobsOf(idp)]
    const dear = await startWorkloads(sockets, { entries })
    expect((await showToken(dear, await jobToken(dear, { list: [0.75] }))).status).toBe(200)
    const list = Array.from({ length: 500 }, (_, index) => index)
    expect(await showToken(dear, await jobToken(dear, { list }))).toEqual(REFUSED)
    expect(causes(dear).at(-1)).toBe('workloads[0] exceeds the evaluation limit for its claims')
  })

  it('for an unknown resource, one outside of its entry, or no scope of its entry', async () => {
    const other = await showToken(rig, await jobToken(rig), { resource: 'https://other.example' })
    expect(other).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
    const none = await showToken(rig, await jobToken(rig), { scope: 'mcp:write' })
    expect(none).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
    const two = (url: string) => ['mcp', 'other'].map((name) => ({ url: `${url}/${name}`, scopes: [], providers: [] }))
    const bounded = await startWorkloads(sockets, { resources: two })
    expect((await showToken(bounded, await jobToken(bounded))).body.error).toBe('invalid_target')
    const workloads = [jobsOf(bounded.idp, { resources: [`${bounded.url}/other`] })]
    bounded.open({ spec: { ...bounded.spec, ...({ workloads } as object) } })
    expect((await showToken(bounded, await jobToken(bounded))).status).toBe(200)
    const not = await showToken(bounded, await jobToken(bounded), { resource: `${bounded.url}/mcp` })
    expect(not.body.error).toBe('invalid_target')
  })
})

describe('a server that trusts one issuer for both', () => {
  const both = () =>
    startWorkloads(sockets, {
      secrets: { [`clients/${JOB.id}`]: JOB.secret },
      spec: (idp) => ({
        identityAssertions: { issuers: [trusting(idp)] },
        clients: [{ clientId: JOB.id, clientSecretRef: { name: 'clients', key: JOB.id }, grantTypes: [JWT_BEARER] }],
      }),
    })

  it('takes each as what it is, and never as the other', async () => {
    const server = await both()
    // Good as both, but for `typ`.
    const claims = { ...jobClaims(server), client_id: JOB.id }
    const [asserted, own] = await Promise.all([
      server.idp.key.sign(claims, { typ: ID_JAG }),
      server.idp.key.sign(claims, { typ: 'JWT' }),
    ])
    expect((await show(server, asserted)).status).toBe(200)
    expect((await showToken(server, own)).status).toBe(200)
    expect(await show(server, own)).toEqual(REFUSED)
    expect(causes(server)).toEqual(['typ is not oauth-id-jag+jwt'])
    // An assertion about a user requires a registered client.
    expect((await showToken(server, asserted)).body.error).toBe('invalid_request')
    const unknown = await showToken(server, asserted, { client_id: JOB.id })
    expect(unknown).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  it('checks a client that is shown, whatever the assertion', async () => {
    const server = await both()
    const form = { grant_type: JWT_BEARER, assertion: await jobToken(server) }
    const wrong = basic({ ...JOB, secret: 'wrong' })
    expect((await ask(server, form, wrong)).body.error).toBe('invalid_client')
    expect((await ask(server, { ...form, client_id: JOB.id, client_secret: 'wrong' })).body.error).toBe(
      'invalid_client',
    )
    expect((await ask(server, { ...form, client_assertion: 'x' })).body.error).toBe('invalid_request')
  })
})

it('a server of workloads alone takes no identity assertions, and a server of these alone no workloads', async () => {
  expect((await showToken(rig, await jag(rig))).body.error).toBe('invalid_request')
  const clients = [{ clientId: JOB.id, clientSecretRef: { name: 'clients', key: JOB.id }, grantTypes: [JWT_BEARER] }]
  const secrets = { [`clients/${JOB.id}`]: JOB.secret }
  const withClient = await startWorkloads(sockets, { secrets, spec: { clients } })
  expect(await show(withClient, await jag(withClient))).toEqual(REFUSED)
  expect(causes(withClient).at(-1)).toMatch(/^identity assertions are not supported here/)
  const asserting = await startWorkloads(sockets, {
    spec: (idp) => ({ workloads: undefined, identityAssertions: { issuers: [trusting(idp)] } }),
  })
  expect((await showToken(asserting, await jobToken(asserting))).body.error).toBe('invalid_request')
})
