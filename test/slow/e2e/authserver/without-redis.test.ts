import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  authorizeUrl,
  getTokens,
  makePkce,
  postForm,
  postJson,
  REDIRECT,
  register,
} from '../../../support/authserver/rig.ts'
import { startDeployment, type Deployment } from '../../../support/redis/deployment.ts'
import { createSockets } from '../../../support/sockets.ts'
import { CALL, MCP } from '../../../support/e2e/credentials.ts'
import { post } from '../../../support/e2e/lab.ts'
import { type LoginFleet, openLoginFleet } from '../../../support/e2e/authserver/fleet.ts'

const sockets = createSockets()
let deployment: Deployment
let fleet: LoginFleet

const everything = () => [...deployment.nodes, ...deployment.sentinels]

beforeAll(async () => {
  deployment = await startDeployment()
  for (const one of everything()) await one.kill()
  fleet = await openLoginFleet(sockets, deployment, { size: 1 })
}, 180_000)
afterAll(async () => {
  await sockets.closeAll()
  await deployment.close()
})

/** As ids of registered clients look. */
const KNOWN_ELSEWHERE = 'A'.repeat(22)
const settled = { timeout: 20_000, interval: 50 }
const DOWN = { status: 200, text: expect.stringContaining('the store is down') as string }
const UP = { status: 200, text: expect.not.stringContaining('the store is down') as string }
const readiness = async () => {
  const response = await fetch(`${fleet.replicas[0]?.adminUrl}/readiness`)
  return { status: response.status, text: await response.text() }
}
const call = async (token: string) => {
  const response = await post(`${fleet.issuer}/mcp`, CALL, { ...MCP, authorization: `Bearer ${token}` })
  return { status: response.status, retryAfter: response.headers.get('retry-after'), text: await response.text() }
}

describe('an authorization server whose Redis', () => {
  it('is not there at start says so, answers 503, and works as soon as it is', async () => {
    expect(await readiness()).toEqual(DOWN)
    expect((await fetch(`${fleet.issuer}/.well-known/oauth-authorization-server`)).status).toBe(200)
    const metadata = { client_name: 'Early', redirect_uris: [REDIRECT] }
    const registration = await postJson(`${fleet.issuer}/oauth/register`, metadata)
    expect([registration.status, await registration.json()]).toMatchObject([503, { error: 'temporarily_unavailable' }])
    const form = { grant_type: 'refresh_token', refresh_token: 'x', client_id: KNOWN_ELSEWHERE }
    const token = await postForm(`${fleet.issuer}/oauth/token`, form)
    expect(token.status).toBe(503)
    expect(Number(token.headers.get('retry-after'))).toBeGreaterThan(0)
    const page = await fetch(authorizeUrl(fleet, { id: KNOWN_ELSEWHERE, secret: undefined }, makePkce()), {
      redirect: 'manual',
    })
    expect([page.status, await page.text()]).toEqual([503, expect.stringContaining('Sign-in is unavailable')])

    for (const one of everything()) await one.restart()
    await vi.waitFor(async () => expect(await readiness()).toEqual(UP), settled)
    // The sentinels may still move the master when all come back at once.
    await vi.waitFor(async () => {
      const { access_token: access } = await getTokens(fleet, await register(fleet))
      expect((await call(access)).status).toBe(200)
    }, settled)
  })

  it('goes away serves callers with a valid token, and the others get Retry-After', async () => {
    const client = await register(fleet)
    const [known, idle] = [await getTokens(fleet, client), await getTokens(fleet, client)]
    expect((await call(known.access_token)).status).toBe(200)
    for (const one of everything()) await one.kill()
    await vi.waitFor(async () => expect(await readiness()).toEqual(DOWN), settled)
    for (let round = 0; round < 20; round += 1) expect((await call(known.access_token)).status).toBe(200)
    // Its upstream token is not in this process yet.
    expect(await call(idle.access_token)).toMatchObject({
      status: 503,
      retryAfter: expect.stringMatching(/^\d+$/) as string,
    })
    for (const one of everything()) await one.restart()
    await vi.waitFor(async () => expect(await readiness()).toEqual(UP), settled)
    expect((await call(known.access_token)).status).toBe(200)
  })
})
