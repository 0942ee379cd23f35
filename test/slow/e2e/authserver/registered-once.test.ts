import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Browser } from '../../../support/authserver/browser.ts'
import { authorizeUrl, makePkce, register } from '../../../support/authserver/rig.ts'
import { startDeployment, type Deployment } from '../../../support/redis/deployment.ts'
import { operate } from '../../../support/redis/operator.ts'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import { type LoginFleet, openLoginFleet } from '../../../support/e2e/authserver/fleet.ts'

const sockets = createSockets()
const asked: string[] = []
const gate = Promise.withResolvers<undefined>()
let deployment: Deployment
let fleet: LoginFleet

beforeAll(async () => {
  deployment = await startDeployment()
  // It is no more than the place where clients register: a login gets as far as to be sent there.
  const upstream = await sockets.https(TLS.server, (request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      asked.push(text)
      const client = { client_id: `client-${asked.length}`, client_secret: `the-secret-of-client-${asked.length}` }
      const answer = JSON.stringify({ ...(JSON.parse(text) as object), ...client, client_secret_expires_at: 0 })
      void gate.promise.then(() => response.writeHead(201, { 'content-type': 'application/json' }).end(answer))
    })
  })
  const oauth2Config = {
    authorizationEndpoint: `${upstream}/authorize`,
    tokenEndpoint: `${upstream}/token`,
    userInfo: { endpointUrl: `${upstream}/userinfo` },
    dcrConfig: { registrationEndpoint: `${upstream}/register` },
  }
  const provider = { name: 'corp', type: 'oauth2', caBundleRef: { name: 'idp', key: 'ca' }, oauth2Config }
  fleet = await openLoginFleet(sockets, deployment, { size: 3, spec: { upstreamProviders: [provider] } })
}, 180_000)
afterAll(async () => {
  await sockets.closeAll()
  await deployment.close()
})

/** A login at a replica, up to the address at the upstream that its user is sent to: which client that is. */
async function clientAt(index: number, client: Awaited<ReturnType<typeof register>>): Promise<string | null> {
  const { url = '' } = fleet.replicas[index] ?? {}
  const rig = { ...fleet, server: { addresses: { authorizeUrl: `${url}/oauth/authorize` } } }
  const browser = new Browser()
  const page = await browser.get(authorizeUrl(rig, client, makePkce()))
  const { location = '' } = await browser.press(page, 'continue')
  return new URL(location).searchParams.get('client_id')
}

it('replicas over one Redis register one client at an upstream, which Redis can not read', async () => {
  const client = await register(fleet)
  const first = clientAt(0, client)
  await expect.poll(() => asked.length, { timeout: 60_000 }).toBe(1)
  const second = clientAt(1, client)
  // Whether it waits by now, or comes when the first is done: there is one client.
  await wait(300)
  gate.resolve(undefined)
  expect(await Promise.all([first, second])).toEqual(['client-1', 'client-1'])
  expect(await clientAt(2, client)).toBe('client-1')
  expect(asked).toHaveLength(1)

  const port = deployment.nodes[0]?.port ?? 0
  const keys = (await operate(port, ['keys', '*'])) as string[]
  const kept = await Promise.all(keys.map(async (key) => `${key} ${String(await operate(port, ['dump', key]))}`))
  expect(kept.length).toBeGreaterThan(1)
  expect(kept.join('\n')).not.toContain('the-secret-of-client')
}, 120_000)
