import { afterAll, describe, expect, it } from 'vitest'
import { createMemoryStore, StoreError } from '../../../src/storage/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { getTokens, LIMITS, postJson, refresh, register, startRig } from '../../support/authserver/rig.ts'

const sockets = createSockets()
afterAll(() => sockets.closeAll())

const uris = { redirect_uris: ['https://app.example.com/cb'] }

describe('client registrations are rejected', () => {
  it('are given to the newest, the oldest that was never used goes first', async () => {
    const small = await startRig(sockets, { spec: { limits: { ...LIMITS, registeredClients: 3 } } })
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      small.clock.advance(1000)
      ids.push(
        ((await (await postJson(`${small.issuer}/oauth/register`, uris)).json()) as { client_id: string }).client_id,
      )
    }
    const isThere = await Promise.all(ids.map(async (id) => (await small.store.get(`client:${id}`)) !== undefined))
    expect(isThere).toEqual([false, false, true, true, true])
  })
})

it('a use that cannot be recorded fails no login or token request, and is recorded the next time', async () => {
  let noted = 0
  const rig = await startRig(sockets, {
    store: (ports) => {
      const memory = createMemoryStore(ports)
      return {
        ...memory,
        touch: (...use) => ((noted += 1) <= 2 ? Promise.reject(new StoreError('unavailable')) : memory.touch(...use)),
      }
    },
  })
  const client = await register(rig)
  const tokens = await getTokens(rig, client)
  expect(tokens).toMatchObject({ token_type: 'Bearer' })
  expect((await refresh(rig, client, tokens.refresh_token ?? '')).status).toBe(200)
  expect(noted).toBe(3)
})

describe('what registrations may hold', () => {
  const large = (bytes: number) => ({
    ...uris,
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: 'f83O', y: 'x_FE', x5c: ['x'.repeat(bytes)] }] },
  })

  it('is 8 KiB each', async () => {
    const rig = await startRig(sockets)
    expect((await postJson(`${rig.issuer}/oauth/register`, large(7_000))).status).toBe(201)
    const refused = await postJson(`${rig.issuer}/oauth/register`, large(8_192))
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: 'invalid_client_metadata' }])
  })

  it('leaves memory for logins, however many register, and evicts unused clients first', async () => {
    const spec = { limits: { ...LIMITS, registeredClients: 500 } }
    const small = await startRig(sockets, {
      spec,
      store: (ports) => createMemoryStore({ ...ports, maxBytes: 3 * 1024 * 1024 }),
    })
    const client = await register(small)
    await getTokens(small, client)
    for (let i = 0; i < 600; i++) {
      const response = await postJson(`${small.issuer}/oauth/register`, large(7_000))
      expect(response.status).toBe(201)
      await response.arrayBuffer()
    }
    expect(await getTokens(small, client)).toMatchObject({ token_type: 'Bearer' })
    expect(small.server.readiness()).toEqual({ isReady: true, remarks: [] })
    const { metrics } = small
    expect(metrics.value('extauth_authserver_clients_bytes', 'default/as')).toBeLessThanOrEqual(500 * 4_096)
    expect(metrics.value('extauth_authserver_clients', 'default/as')).toBeLessThan(300)
    expect(metrics.value('extauth_authserver_clients_evicted_total')).toBeGreaterThan(300)
  })

  it('is reported in readiness when all slots are in use, and when the store is full', async () => {
    const one = await startRig(sockets, {
      spec: { limits: { ...LIMITS, registeredClients: 1 } },
      store: (ports) => createMemoryStore({ ...ports, maxBytes: 64 * 1024 }),
    })
    await getTokens(one, await register(one))
    const refused = await postJson(`${one.issuer}/oauth/register`, uris)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '60'])
    expect(one.server.readiness()).toEqual({
      isReady: true,
      remarks: [expect.stringMatching(/^new client registrations are rejected/)],
    })
    expect(one.metrics.value('extauth_authserver_registrations_total', 'full')).toBe(1)
    await one.store.put('much', Buffer.alloc(60 * 1024), 60_000)
    expect(one.server.readiness()).toMatchObject({
      isReady: false,
      remarks: ['the store is down: its memory is full', expect.anything()],
    })
    one.clock.advance(60_000)
    expect(one.server.readiness()).toMatchObject({ isReady: true })
  })
})

describe('how often one address registers', () => {
  it('is ten times at once, then once a second', async () => {
    const own = await startRig(sockets)
    const statuses: number[] = []
    for (let i = 0; i < 12; i++) statuses.push((await postJson(`${own.issuer}/oauth/register`, uris)).status)
    expect(statuses).toEqual([...Array<number>(10).fill(201), 429, 429])
    const refused = await postJson(`${own.issuer}/oauth/register`, uris)
    expect([refused.headers.get('retry-after'), await refused.json()]).toMatchObject([
      '1',
      { error: 'temporarily_unavailable' },
    ])
    own.clock.advance(1000)
    expect((await postJson(`${own.issuer}/oauth/register`, uris)).status).toBe(201)
  })
})
