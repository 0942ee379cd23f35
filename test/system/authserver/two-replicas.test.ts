import { decodeJwt } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { openAuthServer, type AuthServer } from '../../../src/authserver/index.ts'
import { runtimeOf, startProxy } from '../../support/proxy/harness.ts'
import { createMemoryStore, type Store } from '../../../src/storage/index.ts'
import { createReplica, newScope } from '../../support/storage/redis-world.ts'
import { createCaller, type ManualClock, type RecordingLog } from '../../support/ports.ts'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { createSockets } from '../../support/sockets.ts'
import { Browser } from '../../support/authserver/browser.ts'
import {
  authorizeUrl,
  backFrom,
  getTokens,
  LIMITS,
  logIn,
  makePkce,
  redeem,
  refresh,
  register,
  startRig,
  type Rig,
  type TestClient,
} from '../../support/authserver/rig.ts'

const AT_ONCE = 50

const sockets = createSockets()
let deployment: Deployment
let rig: Rig
let other: AuthServer
let client: TestClient
/** Done by the first replica before it makes a session. */
let beforeSession: () => Promise<void>
/** The same issuer at two replicas that share nothing but Redis and their keys. */
let replicas: readonly { readonly issuer: string }[]

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())

/** Two replicas; `kind` is what they have in common. */
async function openReplicas(kind: 'memory' | 'Redis'): Promise<void> {
  const scope = newScope()
  let memory: Store | undefined
  const open = (ports: { readonly clock: ManualClock; readonly log: RecordingLog }): Store => {
    if (kind === 'memory') return { ...(memory ??= createMemoryStore(ports)) }
    const { store, stores } = createReplica(deployment.config(), scope)
    sockets.closing(stores)
    return store
  }
  beforeSession = () => Promise.resolve()
  rig = await startRig(sockets, { spec: { limits: LIMITS }, store: (ports) => slow(open(ports)) })
  const { spec, resources, deps, clock, log } = rig
  const proxy = await startProxy(sockets, runtimeOf([]))
  other = sockets.closing(
    openAuthServer({ name: 'default/as', spec, resources }, { ...deps, store: open({ clock, log }) }),
  )
  proxy.swap({ ...runtimeOf([]), localHandlers: other.handlers })
  await Promise.all([rig.server.opened(), other.opened()])
  replicas = [rig, { issuer: proxy.url }]
  client = await register(rig)
}
afterEach(() => sockets.closeAll())

/** A store that waits before sessions are made. */
const slow = (store: Store): Store => ({
  ...store,
  async putIfAbsent(key, ...rest) {
    if (key.startsWith('session:')) await beforeSession()
    return store.putIfAbsent(key, ...rest)
  },
})

interface Answer {
  readonly error?: string
  readonly access_token?: string
  readonly refresh_token?: string
}

/** The answers to many requests at once, every other one at the other replica. */
const atBoth = (ask: (replica: { readonly issuer: string }) => Promise<Response>): Promise<Answer[]> =>
  Promise.all(
    Array.from({ length: AT_ONCE }, async (_, index) => {
      const response = await ask(replicas[index % 2] ?? rig)
      return (await response.json()) as Answer
    }),
  )

const isRevoked = (server: AuthServer, token: string): boolean =>
  server.issuer.isRevoked({ tsid: decodeJwt<{ tsid: string }>(token).tsid })

describe.each(['memory', 'Redis'] as const)('two replicas on one %s', (kind) => {
  beforeEach(() => openReplicas(kind))

  it(`redeem a code exactly once when ${AT_ONCE} show it at once`, async () => {
    const { answer, pkce } = await logIn(rig, client)
    const answers = await atBoth((replica) => redeem(replica, client, answer.get('code') ?? '', pkce))
    const errors = answers.flatMap(({ error }) => (error === undefined ? [] : [error]))
    expect([errors.length, ...new Set(errors)]).toEqual([AT_ONCE - 1, 'invalid_grant'])
  })

  it('let only one have a login whose code was shown again while it was made', async () => {
    const { answer, pkce } = await logIn(rig, client)
    const code = answer.get('code') ?? ''
    const again: { answer?: Response } = {}
    beforeSession = async () => void (again.answer = await redeem(replicas[1] ?? rig, client, code, pkce))
    const response = await redeem(rig, client, code, pkce)
    expect([again.answer?.status, await again.answer?.json()]).toMatchObject([400, { error: 'invalid_grant' }])
    expect(response.status).toBe(200)
    const { refresh_token: token = '' } = (await response.json()) as Answer
    expect((await refresh(rig, client, token)).status).toBe(200)
  })

  it('end a login at both when its code is shown again after it was made', async () => {
    const { answer, pkce } = await logIn(rig, client)
    const code = answer.get('code') ?? ''
    const { access_token: access = '', refresh_token: token = '' } = (await (
      await redeem(rig, client, code, pkce)
    ).json()) as Answer
    const late = await redeem(replicas[1] ?? rig, client, code, pkce)
    expect([late.status, await late.json()]).toMatchObject([400, { error: 'invalid_grant' }])
    const ended = () => [rig.server, other].map((server) => isRevoked(server, access))
    await vi.waitFor(() => expect(ended()).toEqual([true, true]), 15_000)
    for (const replica of replicas)
      expect(await (await refresh(replica, client, token)).json()).toMatchObject({ error: 'invalid_grant' })
  })

  it(`take one login further when ${AT_ONCE} come back with its state at once`, async () => {
    const browser = new Browser()
    const sent = await browser.press(await browser.get(authorizeUrl(rig, client, makePkce())), 'continue')
    const back = new URL(backFrom(rig, sent))
    const cookie = [...(browser.cookies.get(back.host) ?? [])].map((pair) => pair.join('=')).join('; ')
    const results = await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => {
        const { origin } = new URL(replicas[index % 2]?.issuer ?? '')
        const address = `${origin}${back.pathname}${back.search}`
        const response = await fetch(address, { headers: { cookie }, redirect: 'manual' })
        await response.arrayBuffer()
        return response.headers.get('location')
      }),
    )
    const locations = results.filter((location) => location !== null)
    expect(locations).toHaveLength(1)
    expect(new URL(locations[0] ?? '').searchParams.get('code')).toBeTruthy()
    expect(rig.idp.count('/token')).toBe(1)
  })

  it('ask the upstream once when 200 requests need the same token that has expired', async () => {
    const { access_token: access } = await getTokens(rig, client)
    const claims = decodeJwt<{ sub: string; tsid: string; client_id: string }>(access)
    const { tsid, client_id, sub } = claims
    const caller = createCaller({ issuer: rig.issuer, subject: sub, claims: { tsid, client_id } })
    const before = rig.idp.count('/token')
    rig.clock.advance(3_600_000)
    rig.idp.tokens = { access_token: 'the-next-one', refresh_token: 'the-next-to-refresh', id_token: undefined }
    const tokens = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const { upstreamTokens } = index % 2 === 0 ? rig.server : other
        return (await upstreamTokens.current(caller, 'corp', 'access_token')).token.reveal()
      }),
    )
    expect([...new Set(tokens)]).toEqual(['the-next-one'])
    expect(rig.idp.count('/token') - before).toBe(1)
  })

  it('end the family of a refresh token that is shown more than 30 s after its successor was made', async () => {
    const { access_token: access, refresh_token: first = '' } = await getTokens(rig, client)
    const { refresh_token: next = '' } = (await (await refresh(rig, client, first)).json()) as Answer
    rig.clock.advance(29_000)
    const again = (await (await refresh(replicas[1] ?? rig, client, first)).json()) as Answer
    expect(again.refresh_token).toBe(next)
    rig.clock.advance(2_000)
    const late = await atBoth((replica) => refresh(replica, client, first))
    expect(new Set(late.map(({ error }) => error))).toEqual(new Set(['invalid_grant']))
    await vi.waitFor(
      () => expect([rig.server, other].map((server) => isRevoked(server, access))).toEqual([true, true]),
      15_000,
    )
    expect(await (await refresh(replicas[1] ?? rig, client, next)).json()).toMatchObject({ error: 'invalid_grant' })
  })

  it(`rotate a refresh token once when ${AT_ONCE} show it at once, and all get the same successor`, async () => {
    const { refresh_token: first = '' } = await getTokens(rig, client)
    const answers = await atBoth((replica) => refresh(replica, client, first))
    expect(answers.filter(({ error }) => error !== undefined)).toEqual([])
    const [next = '', ...more] = [...new Set(answers.map((one) => one.refresh_token))]
    expect(more).toEqual([])
    expect(new Set(answers.map((one) => one.access_token)).size).toBe(AT_ONCE)
    for (const [index, token] of [next, first].entries()) {
      const response = await refresh(replicas[1 - index] ?? rig, client, token)
      expect(response.status).toBe(index === 0 ? 200 : 400)
    }
  })
})
