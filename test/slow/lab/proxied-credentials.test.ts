import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Lab } from '../../../lab/cli/lab-compose.ts'
import { callerHeaders, callTool, reasonOf, startTestLab, valuesOf } from '../../support/lab/proxied.ts'

let lab: Lab

beforeAll(async () => {
  lab = await startTestLab()
})
afterAll(() => lab.close())
beforeEach(() => lab.backend.forget())
afterEach(() => lab.identity.faults.set({ exchange: 'none', sts: 'none', introspection: 'none' }))

describe('what the backend sees', () => {
  test('unauthenticated: nothing', async () => {
    const { status, seen } = await callTool(lab, '/unauthenticated', {
      authorization: 'Bearer callers-own',
      cookie: 'a=b',
    })
    expect(status).toBe(200)
    expect(valuesOf(seen?.headers, 'authorization')).toEqual([])
    expect(seen?.headers.join('\n')).not.toContain('callers-own')
    expect(valuesOf(seen?.headers, 'cookie')).toEqual([])
  })

  test('headerInjection: the header, whatever the caller sends under its name', async () => {
    const { status, seen } = await callTool(lab, '/header-injection', { 'x-api-key': 'mine', x_api_key: 'mine too' })
    expect(status).toBe(200)
    expect(valuesOf(seen?.headers, 'x-api-key')).toEqual(['lab-api-key-that-is-no-secret'])
    expect(seen?.headers.join('\n')).not.toContain('mine')
  })

  test("bearerToken: the token instead of the caller's", async () => {
    const headers = await callerHeaders(lab)
    const { status, seen } = await callTool(lab, '/bearer-token', headers)
    expect(status).toBe(200)
    expect(valuesOf(seen?.headers, 'authorization')).toEqual(['Bearer lab-bearer-token-that-is-no-secret'])
    expect(seen?.headers.join('\n')).not.toContain(headers['authorization']?.slice('Bearer '.length))
  })

  test('clientCredentials: the proxy’s own token, one for all callers', async () => {
    const before = lab.identity.calls('token')
    for (const sub of ['alice', 'bob']) {
      const { status, seen } = await callTool(lab, '/client-credentials', await callerHeaders(lab, { sub }))
      expect(status).toBe(200)
      expect(seen?.verified).toMatchObject({ claims: { sub: 'lab-proxy', aud: 'lab-backend', scope: 'mcp:tools' } })
      expect(JSON.stringify(seen)).not.toContain(sub)
    }
    expect(lab.identity.calls('token') - before).toBe(1)
  })

  test('clientCredentials: a young token that the backend rejects is replaced once, when a second caller confirms it', async () => {
    const [alice, bob] = [await callerHeaders(lab, { sub: 'alice' }), await callerHeaders(lab, { sub: 'bob' })]
    const { seen } = await callTool(lab, '/client-credentials', alice)
    const [token = ''] = valuesOf(seen?.headers, 'authorization')
    const revoked = await fetch(`${lab.identity.url}/lab/revoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: token.slice('Bearer '.length) }),
    })
    expect(await revoked.json()).toEqual({ revoked: true })
    const before = lab.identity.calls('token')
    const one = await callTool(lab, '/client-credentials', alice)
    expect([one.status, lab.identity.calls('token') - before]).toEqual([502, 0])
    // A replacement is at least a second old before it is replaced.
    await vi.waitFor(async () => expect((await callTool(lab, '/client-credentials', bob)).status).toBe(200), {
      timeout: 10_000,
      interval: 300,
    })
    expect(lab.identity.calls('token') - before).toBe(1)
  })

  test('tokenExchange: a token for the backend about the caller, exchanged once', async () => {
    const headers = await callerHeaders(lab, { sub: 'bob', groups: ['dev'] })
    const before = lab.identity.calls('exchange')
    const first = await callTool(lab, '/token-exchange', headers)
    const second = await callTool(lab, '/token-exchange', headers)
    expect([first.status, second.status, lab.identity.calls('exchange') - before]).toEqual([200, 200, 1])
    expect(first.seen?.verified).toMatchObject({
      claims: { sub: 'bob', aud: 'lab-backend', act: { sub: 'lab-exchange' }, groups: ['dev'], scope: 'mcp:tools' },
    })
  })

  test('tokenExchange takes opaque tokens too', async () => {
    const { status, seen } = await callTool(
      lab,
      '/token-exchange',
      await callerHeaders(lab, { sub: 'carol', opaque: true }),
    )
    expect(status).toBe(200)
    expect(seen?.verified).toMatchObject({ claims: { sub: 'carol' } })
  })

  test('obo: a token for the backend on behalf of the caller, asked for once', async () => {
    const headers = await callerHeaders(lab, { sub: 'bob' })
    const before = lab.identity.calls('obo')
    const first = await callTool(lab, '/obo', headers)
    const second = await callTool(lab, '/obo', headers)
    expect([first.status, second.status, lab.identity.calls('obo') - before]).toEqual([200, 200, 1])
    expect(first.seen?.verified).toMatchObject({
      claims: { sub: 'bob', aud: 'api://lab-backend', azp: 'extauth-lab', scp: 'mcp.tools' },
    })
  })

  test.each([
    ['admins', 'lab-admin', 'by its claim'],
    ['dev', 'lab-developer', 'by its matcher'],
    [undefined, 'lab-reader', 'as the fallback'],
  ] as [string | undefined, string, string][])('cloudSts: groups %s sign as the role %s (%s)', async (group, role) => {
    const headers = await callerHeaders(lab, {
      sub: `user-${role}`,
      ...(group === undefined ? {} : { groups: [group] }),
    })
    const { status, seen } = await callTool(lab, '/cloud-sts?b=2&a=1', headers)
    expect(status).toBe(200)
    expect(seen?.verified).toMatchObject({
      roleArn: `arn:cloud:iam::000000000000:role/${role}`,
      sessionName: `user-${role}`,
    })
    expect(seen?.target).toBe('/cloud-sts/mcp?b=2&a=1')
  })
})

describe('when something is wrong', () => {
  test.each(['bearer-token', 'client-credentials', 'token-exchange', 'obo', 'cloud-sts'])(
    '%s without a token: 401 and nothing is sent',
    async (route) => {
      const { status, headers, seen } = await callTool(lab, `/${route}`)
      expect([status, seen]).toEqual([401, undefined])
      expect(headers.get('www-authenticate')).toContain(`/.well-known/oauth-protected-resource/${route}`)
    },
  )

  test('a subject for whom nothing is exchanged: 403', async () => {
    const { status, body, seen } = await callTool(lab, '/token-exchange', await callerHeaders(lab, { sub: 'mallory' }))
    expect([status, reasonOf(body), seen]).toEqual([403, 'exchange_denied', undefined])
  })

  test.each([
    ['no consent', { sub: 'mallory' }, 'exchange_denied', 1],
    ['it belongs to an application', { sub: 'robot', claims: { idtyp: 'app' } }, 'not_a_user_token', 0],
    ['it has no delegated permission', { sub: 'robot', claims: { scp: null } }, 'not_a_user_token', 0],
  ])('obo: 403 where %s', async (_what, claims, reason, asked) => {
    const before = lab.identity.calls('obo')
    const { status, body, seen } = await callTool(lab, '/obo', await callerHeaders(lab, claims))
    expect([status, reasonOf(body), seen]).toEqual([403, reason, undefined])
    expect(lab.identity.calls('obo') - before).toBe(asked)
  })

  test('obo: who logged in with a password alone gets two challenges, and the tenant is asked once', async () => {
    const headers = await callerHeaders(lab, { sub: 'alice', claims: { amr: ['pwd'] } })
    const before = lab.identity.calls('obo')
    const answers = [await callTool(lab, '/obo', headers), await callTool(lab, '/obo', headers)]
    for (const { status, headers: came, body } of answers) {
      expect([status, reasonOf(body)]).toEqual([401, 'interaction_required'])
      const [own = '', stepUp = ''] = (came.get('www-authenticate') ?? '').split(', Bearer realm=""')
      expect(own).toContain('/.well-known/oauth-protected-resource/obo')
      expect(stepUp).toContain(`authorization_uri="${lab.identity.tlsUrl}/lab.example/oauth2/v2.0/authorize"`)
      const claims = /claims="([^"]+)"/.exec(stepUp)?.[1] ?? ''
      expect(JSON.parse(Buffer.from(claims, 'base64').toString())).toHaveProperty('access_token.amr')
    }
    expect(lab.identity.calls('obo') - before).toBe(1)
  })

  test('a throttled exchange: 503 with Retry-After', async () => {
    lab.identity.faults.set({ exchange: 'throttled', retryAfterSeconds: 3 })
    const { status, headers } = await callTool(lab, '/token-exchange', await callerHeaders(lab, { sub: 'throttled' }))
    expect([status, headers.get('retry-after')]).toEqual([503, '3'])
  })

  test('a revoked token causes one more exchange, and the caller gets no error', async () => {
    const headers = await callerHeaders(lab, { sub: 'revoked' })
    await callTool(lab, '/token-exchange', headers)
    const before = lab.identity.calls('exchange')
    lab.identity.faults.set({ exchange: 'revoking' })
    const { status } = await callTool(lab, '/token-exchange', headers)
    expect([status, lab.identity.calls('exchange') - before]).toEqual([200, 1])
  })

  test('revoked credentials cause one more call to STS, and the caller gets no error', async () => {
    const headers = await callerHeaders(lab, { sub: 'sts-revoked' })
    await callTool(lab, '/cloud-sts', headers)
    const before = lab.sts.calls()
    lab.sts.faults.set({ sts: 'revoking' })
    const { status } = await callTool(lab, '/cloud-sts', headers)
    expect([status, lab.sts.calls() - before]).toEqual([200, 1])
  })

  test('STS throttles: 503; an opaque token: 403', async () => {
    lab.sts.faults.set({ sts: 'throttled' })
    const throttled = await callTool(lab, '/cloud-sts', await callerHeaders(lab, { sub: 'sts-throttled' }))
    expect([throttled.status, reasonOf(throttled.body)]).toEqual([503, 'sts_throttled'])
    const opaque = await callTool(lab, '/cloud-sts', await callerHeaders(lab, { sub: 'opaque', opaque: true }))
    expect(opaque.status).toBe(403)
  })
})

test('a backend whose clock is ten minutes ahead gets signatures of its own time', async () => {
  const ahead = await startTestLab({ backendClock: { now: () => Date.now() + 600_000 } })
  // Its credentials outlive the skew, so only the date of the signature is wrong at first.
  const headers = await callerHeaders(ahead, { sub: 'skewed' })
  const first = await callTool(ahead, '/cloud-sts', headers)
  expect(first.status).toBe(200)
  expect(ahead.backend.requests('/cloud-sts').map(({ status }) => status)).toEqual([403, 200])
  const second = await callTool(ahead, '/cloud-sts', headers)
  expect(second.status).toBe(200)
  expect(ahead.backend.requests('/cloud-sts')).toHaveLength(3)
  await ahead.close()
})
