import { decodeJwt } from 'jose'
import { afterEach, expect, it } from 'vitest'
import { createMemoryStore, type Store } from '../../../src/storage/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { Browser } from '../../support/authserver/browser.ts'
import {
  authorizeUrl,
  backFrom,
  logIn,
  makePkce,
  redeem,
  refresh,
  register,
  startRig,
  type Tokens,
} from '../../support/authserver/rig.ts'
import { ACCESS, REFRESH } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it('what is stored in a whole login is of no use to who reads the store', async () => {
  const written: string[] = []
  const record = (store: Store): Store => ({
    ...store,
    put: (key, value, ttlMs) => (written.push(key, value.toString('latin1')), store.put(key, value, ttlMs)),
    putIfAbsent: (key, value, ttlMs) => (
      written.push(key, value.toString('latin1')),
      store.putIfAbsent(key, value, ttlMs)
    ),
    compareAndSet: (key, version, value, ttlMs, fence) => (
      written.push(key, value.toString('latin1')),
      store.compareAndSet(key, version, value, ttlMs, fence)
    ),
    admit: (collection, key, value, ttlMs, bound) => (
      written.push(key, value.toString('latin1')),
      store.admit(collection, key, value, ttlMs, bound)
    ),
  })
  const rig = await startRig(sockets, { store: (ports) => record(createMemoryStore(ports)) })
  const client = await register(rig, { token_endpoint_auth_method: 'client_secret_post' })
  const secret = client.secret ?? ''
  const { answer, pkce, browser } = await logIn(rig, client)
  const code = answer.get('code') ?? ''
  const more = { client_secret: secret }
  const tokens = (await (await redeem(rig, client, code, pkce, more)).json()) as Tokens
  const next = (await (await refresh(rig, client, tokens.refresh_token ?? '', more)).json()) as Tokens
  const cookies = [...browser.cookies.values()].flatMap((jar) => Array.from(jar.values()))
  const secrets = [ACCESS, REFRESH, secret, code, pkce.verifier, tokens.refresh_token ?? '', next.refresh_token ?? '']
  const dump = written.join('\n')
  expect(written.length).toBeGreaterThan(8)
  for (const one of [...secrets, tokens.access_token, ...cookies, 'user-1', 'one@example.com'])
    expect(dump).not.toContain(one)
  expect(decodeJwt(tokens.access_token)['sub']).not.toBe('user-1')
})

it('nothing is stored before the user has agreed', async () => {
  const rig = await startRig(sockets)
  const client = await register(rig)
  const before = (rig.store as ReturnType<typeof createMemoryStore>).entries
  const browser = new Browser()
  const asked = await browser.get(authorizeUrl(rig, client, makePkce()))
  await browser.press(asked, 'cancel')
  expect((rig.store as ReturnType<typeof createMemoryStore>).entries).toBe(before)
})

it('a failed login leaves nothing', async () => {
  const rig = await startRig(sockets)
  const client = await register(rig)
  const store = rig.store as ReturnType<typeof createMemoryStore>
  const before = store.entries
  const browser = new Browser()
  const sent = await browser.press(await browser.get(authorizeUrl(rig, client, makePkce())), 'continue')
  expect(store.entries).toBe(before + 1)
  rig.idp.token = { status: 500 }
  await browser.get(backFrom(rig, sent))
  expect(store.entries).toBe(before)
})
