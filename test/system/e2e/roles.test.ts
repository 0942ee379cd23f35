import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CredentialsWorld, openCredentialsWorld, ROLE } from '../../support/e2e/credentials.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'

let world: CredentialsWorld
const COSTLY = 'claims.many.all(a, claims.many.all(b, a != "" && b != ""))'

/** Routes by their difference; each has a fallback, which a failing rule must not select. */
const ROUTES: Readonly<Record<string, { readonly spec?: object; readonly onMatcherError?: string }>> = {
  skip: {},
  deny: { onMatcherError: 'deny' },
  costly: { spec: { roleMappings: [{ matcher: COSTLY, roleArn: `${ROLE}admin` }] } },
  unnamed: { spec: { sessionNameClaim: 'email' } },
  unmapped: { spec: { fallbackRoleArn: undefined } },
  untrusted: { spec: { fallbackRoleArn: `${ROLE}trusts-nobody` } },
}

beforeAll(async () => {
  world = await openCredentialsWorld()
  for (const [name, { spec }] of Object.entries(ROUTES)) {
    const cloudSts = {
      region: 'eu-west-1',
      service: 'aws-mcp',
      roleMappings: [{ matcher: 'claims.dept == "x"', roleArn: `${ROLE}admin` }],
      fallbackRoleArn: `${ROLE}reader`,
      ...spec,
    }
    await world.proxy.write(`${name}.json`, authConfig(name, { type: 'cloudSts', cloudSts }))
  }
  const provider = { name: 'lab', issuerUrl: world.identity.url, audience: 'extauth-lab' }
  await world.proxy.write(
    'proxy.json',
    proxyConfig({
      auth: { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/', providers: [provider] } },
      routes: Object.entries(ROUTES).map(([name, { onMatcherError }]) => ({
        name,
        path: `/${name}`,
        target: `${world.backend.url}/aws/mcp`,
        externalAuthConfigRef: { name },
        onMatcherError: onMatcherError ?? 'skip',
      })),
    }),
  )
  expect(await world.proxy.reload()).toEqual({ ok: true })
})
afterAll(() => world.close())

describe('who gets a role', () => {
  it.each<[route: string, claims: Record<string, string | string[]>, status: number, outcome: string]>([
    ['skip', { dept: 'x' }, 200, `${ROLE}admin`],
    ['skip', {}, 200, `${ROLE}reader`],
    ['deny', { dept: 'x' }, 200, `${ROLE}admin`],
    ['deny', { dept: 'y' }, 200, `${ROLE}reader`],
    ['deny', {}, 403, 'matcher_error'],
    ['costly', { many: ['a', 'b'] }, 200, `${ROLE}admin`],
    ['costly', { many: Array.from({ length: 500 }, (_, index) => `g${index}`) }, 403, 'rule_limit'],
    ['unnamed', { dept: 'x', email: 'a@example.com' }, 200, `${ROLE}admin`],
    ['unnamed', { dept: 'x' }, 403, 'session_name_missing'],
    ['unmapped', {}, 403, 'no_role'],
    ['untrusted', {}, 403, 'role_denied'],
  ])('on the route %s with %j: %i %s', async (route, claims, status, outcome) => {
    world.backend.forget()
    const before = world.sts.calls()
    const headers = await world.bearer({ sub: `${route}-${outcome}`, claims })
    const response = await world.call(route, headers)
    expect(response.status).toBe(status)
    if (status === 200) {
      expect(world.backend.requests().map(({ verified }) => verified?.['roleArn'])).toEqual([outcome])
      return
    }
    expect(await response.json()).toMatchObject({ error: { code: -32000, data: { reason: outcome } } })
    expect(response.headers.get('www-authenticate')).toBeNull()
    expect(world.backend.requests()).toEqual([])
    expect(world.sts.calls() - before).toBe(outcome === 'role_denied' ? 1 : 0)
  })
})
