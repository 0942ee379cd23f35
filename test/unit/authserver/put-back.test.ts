import { afterEach, expect, it, vi } from 'vitest'
import { openAuthServer, type AuthServer } from '../../../src/authserver/index.ts'
import { createMemoryStore, type Store } from '../../../src/storage/index.ts'
import { runtimeOf, startProxy } from '../../support/proxy/harness.ts'
import { createSockets } from '../../support/sockets.ts'
import {
  authorizeUrl,
  LIMITS,
  logIn,
  makePkce,
  redeem,
  refresh,
  register,
  startRig,
} from '../../support/authserver/rig.ts'

// An attacker restores old records in the store: a running replica must not accept them.

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Two replicas on one store, and everything that was ever written there. */
async function createWorld() {
  const written = new Map<string, Buffer[]>()
  let memory: Store | undefined
  const note = (key: string, value: Buffer) => void written.set(key, [...(written.get(key) ?? []), value])
  const storeOf = (inner: Store): Store => ({
    ...inner,
    put: (key, value, ttlMs) => (note(key, value), inner.put(key, value, ttlMs)),
    putIfAbsent: (key, value, ttlMs) => (note(key, value), inner.putIfAbsent(key, value, ttlMs)),
    compareAndSet: (key, version, value, ...rest) => (
      note(key, value),
      inner.compareAndSet(key, version, value, ...rest)
    ),
    admit: (collection, key, value, ...rest) => (note(key, value), inner.admit(collection, key, value, ...rest)),
  })
  const rig = await startRig(sockets, {
    spec: { limits: LIMITS },
    store: (ports) => storeOf((memory ??= createMemoryStore(ports))),
  })
  if (memory === undefined) throw new Error('no store')
  const store = memory
  const { spec, resources, deps } = rig
  const open = (): AuthServer =>
    sockets.closing(openAuthServer({ name: 'default/as', spec, resources }, { ...deps, store: storeOf(store) }))
  const proxy = await startProxy(sockets, runtimeOf([]))
  const other = open()
  proxy.swap({ ...runtimeOf([]), localHandlers: other.handlers })
  await Promise.all([rig.server.opened(), other.opened()])
  const keys = (prefix: string) => [...written.keys()].filter((key) => key.startsWith(prefix))
  const putBack = async (prefix: string) => {
    for (const key of keys(prefix)) await store.put(key, written.get(key)?.[0] ?? Buffer.alloc(0), 3_000_000)
  }
  const erase = async (prefix: string) => store.delete(...keys(prefix))
  const client = await register(rig)
  return { rig, client, store, open, other, both: [rig, { issuer: proxy.url }], putBack, erase }
}

it('a used code is rejected by every replica, whatever else is deleted', async () => {
  const { rig, client, both, putBack, erase } = await createWorld()
  const { answer, pkce } = await logIn(rig, client)
  const code = answer.get('code') ?? ''
  expect((await redeem(rig, client, code, pkce)).status).toBe(200)
  for (const replica of both.toReversed()) {
    await erase('session:')
    await erase('family:')
    await erase('ended:')
    await putBack('code:')
    const again = await redeem(replica, client, code, pkce)
    expect([again.status, await again.json()]).toMatchObject([400, { error: 'invalid_grant' }])
  }
})

it('an ended login stays ended when its family and session are put back and the list of ended ones is erased', async () => {
  const { rig, client, both, putBack, erase, open } = await createWorld()
  const { answer, pkce } = await logIn(rig, client)
  const tokens = (await (await redeem(rig, client, answer.get('code') ?? '', pkce)).json()) as Record<string, string>
  const { refresh_token: token = '', access_token: access = '' } = tokens
  const form = new URLSearchParams({ token, client_id: client.id })
  const revoked = await fetch(`${rig.issuer}/oauth/revoke`, { method: 'POST', body: form })
  expect(revoked.status).toBe(200)
  await erase('ended:')
  await putBack('session:')
  await putBack('family:')
  for (const replica of both) {
    expect(await (await refresh(replica, client, token)).json()).toMatchObject({ error: 'invalid_grant' })
  }
  await erase('ended:')
  const late = open()
  await late.opened()
  const claims = JSON.parse(Buffer.from(access.split('.')[1] ?? '', 'base64url').toString()) as { tsid: string }
  await vi.waitFor(() => expect(late.issuer.isRevoked(claims)).toBe(true))
})

it('a rotated refresh token is rejected by every replica, although its record is restored and its session is active', async () => {
  for (const at of [0, 1]) {
    const { rig, client, both, putBack } = await createWorld()
    const { answer, pkce } = await logIn(rig, client)
    const redeemed = await redeem(rig, client, answer.get('code') ?? '', pkce)
    const { refresh_token: token = '' } = (await redeemed.json()) as Record<string, string>
    expect((await refresh(rig, client, token)).status).toBe(200)
    await putBack('family:')
    const again = await refresh(both[at] ?? rig, client, token)
    expect([again.status, await again.json()]).toMatchObject([400, { error: 'invalid_grant' }])
  }
})

it('a client record that the proxy did not write is ignored', async () => {
  const { rig, client, store } = await createWorld()
  const evil = 'https://evil.example.com/callback'
  const forged = {
    id: client.id,
    kind: 'registered',
    redirectUris: [evil],
    authMethod: 'none',
    grantTypes: ['authorization_code', 'refresh_token'],
    applicationType: 'web',
    issuedAt: 1_800_000_000,
  }
  await store.put(`client:${client.id}`, Buffer.from(JSON.stringify(forged)), 3_000_000)
  const asked = await fetch(authorizeUrl(rig, client, makePkce(), { redirect_uri: evil }), { redirect: 'manual' })
  expect([asked.status, asked.headers.get('location')]).toEqual([400, null])
  expect(await asked.text()).not.toContain('evil.example.com')
})
