import { afterEach, describe, expect, it, vi } from 'vitest'
import { type CredentialsWorld, exchangeConfig, openCredentialsWorld, ROLE } from '../../support/e2e/credentials.ts'

let world: CredentialsWorld
afterEach(() => world.close())

/** Exchanges of a step. */
async function exchanged(step: () => Promise<unknown>): Promise<number> {
  const before = world.identity.calls('exchange')
  await step()
  return world.identity.calls('exchange') - before
}

describe('cached credentials', () => {
  it('of a changed config go with it, those of the others stay', async () => {
    world = await openCredentialsWorld()
    const alice = await world.bearer({ sub: 'alice', groups: ['dev'] })
    for (const route of ['one', 'two', 'aws']) expect(await world.status(route, alice)).toBe(200)
    await world.proxy.write('one.json', exchangeConfig('one', `${world.identity.url}/token`, { scopes: ['read'] }))
    expect(await world.proxy.reload()).toEqual({ ok: true })
    expect((await world.admin('/cache')).json).toMatchObject({ entries: 2 })
    const callsOfSts = world.sts.calls()
    expect(await exchanged(() => world.status('two', alice))).toBe(0)
    expect(await world.status('aws', alice)).toBe(200)
    expect(world.sts.calls()).toBe(callsOfSts)
    expect(await exchanged(() => world.status('one', alice))).toBe(1)
    expect(world.backend.requests('/one').at(-1)?.verified).toMatchObject({ claims: { sub: 'alice', scope: 'read' } })
    // Nothing has changed, so nothing goes.
    expect(await world.proxy.reload()).toEqual({ ok: true })
    for (const route of ['one', 'two']) expect(await exchanged(() => world.status(route, alice))).toBe(0)
  })

  it('of a changed secret go with it, those of the others stay', async () => {
    world = await openCredentialsWorld()
    const alice = await world.bearer({ sub: 'alice' })
    for (const route of ['one', 'two']) expect(await world.status(route, alice)).toBe(200)
    await world.proxy.write('secrets/one/secret', 'not-what-the-provider-knows')
    // Tokens exchanged with the old secret are not used any more, and the new secret is rejected.
    await vi.waitFor(async () => expect(await world.status('one', alice)).toBe(500), 10_000)
    expect(await exchanged(() => world.status('two', alice))).toBe(0)
    await vi.waitFor(async () => expect((await world.admin('/cache')).json).toMatchObject({ entries: 1 }), 10_000)
  })

  it('are purged on the admin listener by subject, issuer, config and role, and by nothing else', async () => {
    world = await openCredentialsWorld()
    const issuer = encodeURIComponent(world.identity.url)
    const role = encodeURIComponent(`${ROLE}developer`)
    const callers = [
      await world.bearer({ sub: 'alice', groups: ['dev'] }),
      await world.bearer({ sub: 'bob', groups: [] }),
    ]
    const fill = async (): Promise<void> => {
      for (const headers of callers) {
        for (const route of ['one', 'two', 'aws']) expect(await world.status(route, headers)).toBe(200)
      }
    }
    for (const [query, purged] of [
      ['', 6],
      [`?issuer=${issuer}`, 6],
      ['?subject=alice', 3],
      ['?config=default/one', 2],
      [`?role=${role}`, 1],
      [`?subject=bob&issuer=${issuer}&config=default/aws&role=${encodeURIComponent(`${ROLE}reader`)}`, 1],
      ['?subject=bob&role=another', 0],
      ['?issuer=https://other.example', 0],
    ] as const) {
      await fill()
      expect([query, (await world.admin(`/cache${query}`, 'DELETE')).json]).toEqual([query, { purged }])
      expect((await world.admin('/cache')).json).toMatchObject({ entries: 6 - purged })
    }
    await fill()
    for (const query of ['?sub=alice', '?subject='])
      expect((await world.admin(`/cache${query}`, 'DELETE')).status).toBe(400)
    const { json } = await world.admin('/cache')
    expect(json).toMatchObject({ entries: 6, maxEntries: expect.any(Number) as unknown, inFlight: 0, negative: 0 })
    const groups = json['groups'] as { config: string; issuer: string; role?: string; count: number }[]
    expect(new Set(groups.map(({ config, role, count }) => `${config} ${role ?? 'no role'} ${count}`))).toEqual(
      new Set([
        `default/aws ${ROLE}developer 1`,
        `default/aws ${ROLE}reader 1`,
        'default/one no role 2',
        'default/two no role 2',
      ]),
    )
    expect(Object.keys(groups[0] ?? {})).toContain('oldestAgeSeconds')
    const shown = JSON.stringify(json)
    const sent = world.backend.requests().flatMap(({ headers }) => headers)
    const tokens = sent.flatMap((value) => /^Bearer (.+)$/.exec(value)?.[1] ?? [])
    expect(tokens.length).toBeGreaterThan(3)
    for (const value of [...tokens, 'alice', 'a-secret-of-']) expect(shown).not.toContain(value)
  })
})
