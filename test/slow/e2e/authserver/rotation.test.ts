import { setTimeout as wait } from 'node:timers/promises'
import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { getTokens, refresh, register, type TestClient, type Tokens } from '../../../support/authserver/rig.ts'
import { startDeployment, type Deployment } from '../../../support/redis/deployment.ts'
import { createSockets } from '../../../support/sockets.ts'
import { CALL, MCP } from '../../../support/e2e/credentials.ts'
import { post } from '../../../support/e2e/lab.ts'
import { authConfig } from '../../../support/e2e/run.ts'
import { type LoginFleet, newSigningKey, openLoginFleet } from '../../../support/e2e/authserver/fleet.ts'

const WORKERS = 4

const sockets = createSockets()
let deployment: Deployment
let fleet: LoginFleet
let client: TestClient
/** Client secrets that the identity provider accepts. */
let accepted = ['of us']

beforeAll(async () => {
  deployment = await startDeployment()
  fleet = await openLoginFleet(sockets, deployment, {
    size: 2,
    files: {
      'secrets/as/next-hmac': 'another HMAC secret of thirty-two bytes',
      'secrets/as/next-signing': newSigningKey(),
    },
  })
  fleet.idp.token = ({ headers }) => {
    const [, secret = ''] = Buffer.from(headers.authorization?.slice(6) ?? '', 'base64')
      .toString()
      .split(':')
    return accepted.includes(decodeURIComponent(secret.replaceAll('+', ' ')))
      ? undefined
      : { status: 401, body: { error: 'invalid_client' } }
  }
  // Due at each use, so that sessions are renewed all the time.
  fleet.idp.tokens = { expires_in: 1 }
  client = await register(fleet)
}, 180_000)
afterAll(async () => {
  await sockets.closeAll()
  await deployment.close()
})

const issuers = () => fleet.replicas.map(({ url }) => ({ issuer: url }))

/**
 * Workers call, renew and call, again and again, at both replicas; half of them log in again each time, the others stay logged in.
 * Unexpected results are recorded.
 */
function startLoad() {
  const problems: string[] = []
  const rounds = Array.from({ length: WORKERS }, () => 0)
  const kids = new Set<string | undefined>()
  const over = new AbortController()

  const call = async (token: string): Promise<void> => {
    for (const { url } of fleet.replicas) {
      const response = await post(`${url}/mcp`, CALL, { ...MCP, authorization: `Bearer ${token}` })
      const text = await response.text()
      if (response.status !== 200) problems.push(`call: ${response.status} ${text}`)
    }
  }
  const kept: Tokens[] = []
  const round = async (worker: number): Promise<void> => {
    let tokens = kept[worker] ?? (await getTokens(fleet, client))
    await call(tokens.access_token)
    for (const issuer of issuers()) {
      const response = await refresh(issuer, client, tokens.refresh_token ?? '')
      const body = (await response.json()) as Tokens
      if (response.status === 200) tokens = body
      else problems.push(`refresh: ${response.status} ${JSON.stringify(body)}`)
      kids.add(decodeProtectedHeader(tokens.access_token).kid)
      await call(tokens.access_token)
    }
    if (worker % 2 === 0) kept[worker] = tokens
    rounds[worker] = (rounds[worker] ?? 0) + 1
  }
  const work = async (worker: number): Promise<void> => {
    while (!over.signal.aborted) {
      await round(worker).catch((error: unknown) => void problems.push(String(error)))
      // The load has to be there at each change, not to be as much as goes.
      await wait(300)
    }
  }
  const working = rounds.map((_, worker) => work(worker))
  return {
    problems,
    kids,
    /** Everything that has begun by now is over, and each worker has done all there is to do once more. */
    async goOn() {
      const before = [...rounds]
      // Long enough for upstream tokens to be due.
      await wait(1_500)
      await vi.waitFor(() => expect(rounds.every((count, worker) => count >= (before[worker] ?? 0) + 2)).toBe(true), {
        timeout: 60_000,
        interval: 50,
      })
    },
    async stop() {
      over.abort()
      await Promise.all(working)
    },
  }
}

const reloads = () => fleet.replicas.map(({ running }) => running.stderr().split('"configuration reloaded"').length)

/** Activates key lists at both replicas. */
async function use(signing: readonly string[], hmac: readonly string[]): Promise<void> {
  const refs = (keys: readonly string[]) => keys.map((key) => ({ name: 'as', key }))
  const embeddedAuthServer = { ...fleet.spec, signingKeySecretRefs: refs(signing), hmacSecretRefs: refs(hmac) }
  const before = reloads()
  await fleet.write('as.json', authConfig('as', { type: 'embeddedAuthServer', embeddedAuthServer }))
  await vi.waitFor(() => expect(reloads().every((count, index) => count > (before[index] ?? 0))).toBe(true), 15_000)
}

it('signing key, HMAC secret and client secret at the upstream change in the documented order, and no request fails', async () => {
  const load = startLoad()
  await load.goOn()
  await use(['signing', 'next-signing'], ['hmac', 'next-hmac'])
  await load.goOn()
  await use(['next-signing', 'signing'], ['next-hmac', 'hmac'])
  // As long as values of the old keys are valid: here until none is left.
  await load.goOn()
  await use(['next-signing'], ['next-hmac'])
  await load.goOn()

  accepted = ['of us', 'the next one']
  await fleet.write('secrets/idp/secret', 'the next one')
  await load.goOn()
  accepted = ['the next one']
  await load.goOn()
  // A provider that takes one only: the file comes just before, and who has not read it reads it when it is refused.
  await fleet.write('secrets/idp/secret', 'the last one')
  accepted = ['the last one']
  await load.goOn()

  await load.stop()
  expect(load.problems).toEqual([])
  expect(load.kids.size).toBe(2)
  expect(fleet.idp.asked.filter(({ form }) => form['grant_type'] === 'refresh_token').length).toBeGreaterThan(10)
}, 120_000)
