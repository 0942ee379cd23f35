import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { logInAtRoute } from '../../../lab/cli/lab-login.ts'
import { INITIALIZE, openLab, post, type TestLab } from '../../support/e2e/lab.ts'

let lab: TestLab

beforeAll(async () => {
  lab = await openLab()
})
afterAll(() => lab.close())
afterEach(async () => {
  await fault({ exchange: 'none', sts: 'none', introspection: 'none' })
  await fetch(`${lab.adminUrl}/cache`, { method: 'DELETE' })
})

const fault = async (change: object): Promise<void> => {
  const response = await fetch(`${lab.identity.url}/lab/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(change),
  })
  expect(response.status).toBe(200)
}
const bearer = async (sub: string, extra: object = {}): Promise<Record<string, string>> => ({
  authorization: `Bearer ${await lab.token({ sub, groups: ['admins'], ...extra })}`,
})
interface ErrorBody {
  readonly error: { readonly code: number; readonly data: { readonly reason: string; readonly requestId: string } }
}
async function outcome(response: Response): Promise<[number, string]> {
  const body = (await response.json()) as ErrorBody
  expect(body.error.code).toBe(-32000)
  expect(body.error.data.requestId).toBe(response.headers.get('x-request-id'))
  return [response.status, body.error.data.reason]
}

/** Only users of the lab can log in at the proxy. */
const logIn = async (user: string): Promise<Record<string, string>> => ({
  authorization: `Bearer ${await logInAtRoute(lab.url, '/xaa', user)}`,
})
const FETCHING = [
  { route: 'token-exchange', callerOf: bearer },
  { route: 'obo', callerOf: bearer },
  { route: 'xaa', callerOf: logIn },
]

describe.each(FETCHING)('when the token endpoint of $route misbehaves', ({ route, callerOf }) => {
  const ask = (caller: Record<string, string>) => post(`${lab.url}/${route}`, INITIALIZE, caller)

  it.each([
    ['throttled', 'bob'],
    ['broken', 'carol'],
  ] as const)('%s: a new caller gets 503, one with a live credential notices nothing', async (mode, stranger) => {
    const known = await callerOf('alice')
    expect((await ask(known)).status).toBe(200)
    const fresh = await callerOf(stranger)
    await fault({ exchange: mode })
    expect((await ask(known)).status).toBe(200)
    const refused = await ask(fresh)
    expect(await outcome(refused)).toEqual([503, 'identity_provider_unavailable'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('answers 403 to a caller without a credential', async () => {
    expect(await outcome(await ask(await callerOf('mallory')))).toEqual([403, 'exchange_denied'])
  })
})

describe.each(['token-exchange', 'obo'])('when %s returned a token that is revoked', (route) => {
  it('gets another one once the backend refuses it, and the client notices nothing', async () => {
    const caller = await bearer('revoked')
    expect((await post(`${lab.url}/${route}`, INITIALIZE, caller)).status).toBe(200)
    await fault({ exchange: 'revoking' })
    lab.backend.forget()
    expect((await post(`${lab.url}/${route}`, INITIALIZE, caller)).status).toBe(200)
    expect(lab.backend.requests(`/${route}`)).toHaveLength(2)
    expect((await post(`${lab.url}/${route}`, INITIALIZE, caller)).status).toBe(200)
    expect(lab.backend.requests(`/${route}`)).toHaveLength(3)
  })
})

describe('when STS misbehaves', () => {
  it.each([
    ['throttled', 503, 'sts_throttled'],
    ['broken', 503, 'sts_unavailable'],
  ] as const)(
    '%s: a new caller gets %i %s, one with live credentials notices nothing',
    async (mode, status, reason) => {
      const known = await bearer('known')
      expect((await post(`${lab.url}/cloud-sts`, INITIALIZE, known)).status).toBe(200)
      await fault({ sts: mode })
      expect((await post(`${lab.url}/cloud-sts`, INITIALIZE, known)).status).toBe(200)
      const refused = await post(`${lab.url}/cloud-sts`, INITIALIZE, await bearer(`new-${mode}`))
      expect(await outcome(refused)).toEqual([status, reason])
    },
  )

  it('says to a caller with an opaque token why it cannot work', async () => {
    const response = await post(`${lab.url}/cloud-sts`, INITIALIZE, await bearer('alice', { opaque: true }))
    expect(await outcome(response)).toEqual([403, 'opaque_token_unsupported'])
  })
})

describe('opaque tokens', () => {
  it('are introspected and exchanged like others; with the provider broken, it is not the token that is to blame', async () => {
    const caller = await bearer('opal', { opaque: true })
    expect((await post(`${lab.url}/token-exchange`, INITIALIZE, caller)).status).toBe(200)
    await fault({ introspection: 'throttled' })
    const response = await post(`${lab.url}/bearer-token`, INITIALIZE, await bearer('opal-2', { opaque: true }))
    expect(await outcome(response)).toEqual([503, 'identity_provider_unavailable'])
  })
})

describe('what is written down', () => {
  it('has no token, no secret and no claim in it', async () => {
    const alice = await bearer('alice-whose-name-is-private')
    const carol = await logIn('carol')
    const lines = lab.log.lines.length
    for (const route of ['bearer-token', 'token-exchange', 'cloud-sts', 'header-injection']) {
      await post(`${lab.url}/${route}`, INITIALIZE, alice)
      await post(`${lab.url}/${route}`, INITIALIZE, { authorization: 'Bearer not.a.token-of-anybody' })
    }
    for (const route of ['obo', 'client-credentials']) await post(`${lab.url}/${route}`, INITIALIZE, alice)
    await post(`${lab.url}/xaa`, INITIALIZE, carol)
    const metrics = await (await fetch(`${lab.adminUrl}/metrics`)).text()
    const config = await (await fetch(`${lab.adminUrl}/config`)).text()
    const cache = await (await fetch(`${lab.adminUrl}/cache`)).text()
    const decisions = await (await fetch(`${lab.adminUrl}/decisions`)).text()
    const written = [...lab.log.lines, metrics, config, cache, decisions].join('\n')
    expect(lab.log.lines.length).toBeGreaterThan(lines)
    expect(metrics).toContain('extauth_requests_total')
    const seen = lab.backend.requests().flatMap(({ headers }) => headers.filter((_, index) => index % 2 === 1))
    const credentials = seen
      .filter((value) => /^Bearer |^AWS4-/.test(value))
      .map((value) => value.split(/[ =]/).at(-1) ?? '')
    expect(credentials.length).toBeGreaterThan(3)
    const secrets = [
      alice['authorization']?.slice(7) ?? '',
      carol['authorization']?.slice(7) ?? '',
      'not.a.token-of-anybody',
      'alice-whose-name-is-private',
      'lab-api-key-that-is-no-secret',
      'lab-bearer-token-that-is-no-secret',
      ...credentials,
    ]
    expect(secrets.filter((secret) => written.includes(secret))).toEqual([])
  })
})
