import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  getTokens,
  logIn,
  postForm,
  redeem,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../../../support/authserver/rig.ts'
import { startDeployment, type Deployment } from '../../../support/redis/deployment.ts'
import { operate } from '../../../support/redis/operator.ts'
import { createSockets } from '../../../support/sockets.ts'
import { CALL, MCP } from '../../../support/e2e/credentials.ts'
import { post } from '../../../support/e2e/lab.ts'
import { authConfig } from '../../../support/e2e/run.ts'
import { claimsOfNow, type LoginFleet, openLoginFleet, type Replica } from '../../../support/e2e/authserver/fleet.ts'

const sockets = createSockets()
let deployment: Deployment
let fleet: LoginFleet
let client: TestClient

beforeAll(async () => {
  deployment = await startDeployment()
  fleet = await openLoginFleet(sockets, deployment, { size: 4 })
  client = await register(fleet)
}, 180_000)
afterAll(async () => {
  await sockets.closeAll()
  await deployment.close()
})

const replica = (index: number): Replica => {
  const found = fleet.replicas[index]
  if (found === undefined) throw new RangeError('no such replica')
  return found
}

const call = async (index: number, token: string) => {
  const response = await post(`${replica(index).url}/mcp`, CALL, { ...MCP, authorization: `Bearer ${token}` })
  await response.arrayBuffer()
  return { status: response.status, challenge: response.headers.get('www-authenticate') ?? '' }
}
const settled = { timeout: 15_000, interval: 20 }
/** Refresh requests at the identity provider. */
const renewals = () => fleet.idp.asked.filter(({ form }) => form['grant_type'] === 'refresh_token').length

describe('a login', () => {
  it('that is made at one replica is good at the others, and is nowhere in Redis in clear text', async () => {
    const { answer, pkce, browser } = await logIn(fleet, client)
    const code = answer.get('code') ?? ''
    const tokens = (await (await redeem(replicaIssuer(1), client, code, pkce)).json()) as Tokens
    for (const index of [0, 1, 2, 3]) expect((await call(index, tokens.access_token)).status).toBe(200)
    const next = (await (await refresh(replicaIssuer(2), client, tokens.refresh_token ?? '')).json()) as Tokens
    expect((await call(3, next.access_token)).status).toBe(200)

    const port = deployment.nodes[0]?.port ?? 0
    const keys = (await operate(port, ['keys', '*'])) as string[]
    expect(keys.length).toBeGreaterThan(3)
    const dump: string[] = []
    for (const key of keys) {
      dump.push(key, String(await operate(port, ['dump', key])))
      const type = await operate(port, ['type', key])
      if (type === 'string') dump.push(String(await operate(port, ['get', key])))
      else dump.push(String(await operate(port, ['zrange', key, '0', '-1'])))
      expect(Number(await operate(port, ['pttl', key]))).toBeGreaterThan(0)
    }
    const cookies = [...browser.cookies.values()].flatMap((jar) => Array.from(jar.values()))
    const idToken = await fleet.idp.idToken(fleet.idp.claims)
    const ours = [tokens, next].flatMap((one) => [one.access_token, one.refresh_token ?? ''])
    const upstream = ['access-token-of-user-1', 'refresh-token-of-user-1', idToken.split('.')[1] ?? '']
    const secrets = [...upstream, ...ours, ...cookies, code, pkce.verifier, 'user-1', 'one@example.com']
    expect(secrets.every((secret) => secret.length > 5)).toBe(true)
    for (const secret of secrets) expect(dump.join('\n')).not.toContain(secret)
  })

  it('that is revoked at one replica is refused by all within two seconds', async () => {
    const { access_token: access, refresh_token: token = '' } = await getTokens(fleet, client)
    for (const index of [0, 1, 2, 3]) expect((await call(index, access)).status).toBe(200)
    const startedAt = performance.now()
    const revoked = await postForm(`${replica(1).url}/oauth/revoke`, { client_id: client.id, token })
    expect(revoked.status).toBe(200)
    await vi.waitFor(async () => {
      for (const index of [0, 1, 2, 3]) expect((await call(index, access)).status).toBe(401)
    }, settled)
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })

  it('outlives a reload that changes the server, at every moment of it', async () => {
    const { access_token: access } = await getTokens(fleet, client)
    const statuses: number[] = []
    const over = new AbortController()
    const ask = async (index: number): Promise<void> => {
      while (!over.signal.aborted) statuses.push((await call(index, access)).status)
    }
    const asking = Promise.all([ask(0), ask(1)])
    const redis = deployment.nodes[0]
    for (const lifespan of ['11m', '12m', '13m']) {
      // A new server first reads its state from Redis.
      redis?.pause()
      setTimeout(() => redis?.resume(), 700)
      const embeddedAuthServer = { ...fleet.spec, tokenLifespans: { accessTokenLifespan: lifespan } }
      await fleet.write('as.json', authConfig('as', { type: 'embeddedAuthServer', embeddedAuthServer }))
      const count = () => replica(0).running.stderr().split('"configuration reloaded"').length
      const before = count()
      await vi.waitFor(() => expect(count()).toBeGreaterThan(before), settled)
    }
    over.abort()
    await asking
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(statuses.length).toBeGreaterThan(20)
  })
})

describe('a replica that is killed while it renews the token of a session', () => {
  /** A login whose upstream token has expired. */
  const expired = async (): Promise<Tokens> => {
    fleet.idp.claims = claimsOfNow()
    fleet.idp.tokens = { expires_in: 1 }
    const tokens = await getTokens(fleet, client)
    fleet.idp.tokens = {}
    await wait(1_100)
    return tokens
  }
  const kill = async (index: number, isUnderWay: () => boolean): Promise<void> => {
    await vi.waitFor(() => expect(isUnderWay()).toBe(true), settled)
    await replica(index).kill()
  }
  /** Asks and does not wait for the answer, which never comes. */
  const start = (index: number, token: string): void => void call(index, token).catch(() => undefined)

  /** Callers wait at most 3 s for a dead replica without a login; after its lock expires, refreshes continue. */
  const heldUp = async (access: string, end: number): Promise<void> => {
    const startedAt = performance.now()
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => call(index % 2, access)))
    expect(performance.now() - startedAt).toBeLessThan(3_000)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    for (const index of [0, 1])
      await vi.waitFor(async () => expect((await call(index, access)).status).toBe(end), settled)
  }

  it('before it has asked costs no more than the one refresh', async () => {
    const { access_token: access } = await expired()
    const before = renewals()
    const documents = () => fleet.idp.count('/.well-known/openid-configuration')
    const known = documents()
    fleet.idp.discovery = { after: new Promise(() => undefined) }
    // It has the lock and reads where to ask.
    start(3, access)
    await kill(3, () => documents() > known)
    fleet.idp.discovery = undefined
    await heldUp(access, 200)
    expect(renewals() - before).toBe(1)
  }, 40_000)

  it('after it has asked leaves one more try, then the client is asked to log in again', async () => {
    const { access_token: access, refresh_token: token = '' } = await expired()
    const before = renewals()
    // The provider rotated the token, and its response is lost.
    fleet.idp.token = ({ form }) =>
      form['grant_type'] !== 'refresh_token' || renewals() - before > 1
        ? { status: 400, body: { error: 'invalid_grant' } }
        : { after: new Promise(() => undefined) }
    start(2, access)
    await kill(2, () => renewals() > before)
    await heldUp(access, 401)
    expect((await call(0, access)).challenge).toContain('resource_metadata=')
    expect(renewals() - before).toBe(2)
    expect(await (await refresh(replicaIssuer(1), client, token)).json()).toMatchObject({ error: 'invalid_grant' })
    fleet.idp.token = undefined
  }, 40_000)
})

/** The same issuer at another replica. */
const replicaIssuer = (index: number): { readonly issuer: string } => ({ issuer: replica(index).url })
