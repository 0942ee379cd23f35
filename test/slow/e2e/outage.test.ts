import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { movableClock } from '../../support/lab/standins.ts'
import { type CredentialsWorld, openCredentialsWorld } from '../../support/e2e/credentials.ts'
import { tokenFor } from '../../support/e2e/grants.ts'

const clock = movableClock()
let world: CredentialsWorld

beforeAll(async () => {
  world = await openCredentialsWorld({ clock })
})
afterAll(() => world.close())

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const SERVICES = {
  'the token endpoint': { route: 'one', fault: 'exchange', calls: () => world.identity.calls('exchange') },
  'the tenant': { route: 'obo', fault: 'exchange', calls: () => world.identity.calls('obo') },
  'the identity provider that issues assertions': {
    route: 'xaa',
    fault: 'exchange',
    calls: () => world.identity.calls('exchange'),
  },
  STS: { route: 'aws', fault: 'sts', calls: () => world.sts.calls() },
} as const

describe.each(Object.entries(SERVICES))('while %s is down under load', (_name, { route, fault, calls }) => {
  it('callers with a valid credential are served, others get Retry-After, and few probes reach it', async () => {
    const callersOf = (name: string, count: number) =>
      Promise.all(range(count).map((index) => world.bearer({ sub: `${route}-${name}-${index}`, ...tokenFor(route) })))
    const live = await callersOf('live', 10)
    const ask = async (headers: Record<string, string>) => {
      const { status, headers: answered } = await world.call(route, headers)
      return { status, wait: Number(answered.get('retry-after')) }
    }
    expect(new Set(await Promise.all(live.map((caller) => world.status(route, caller))))).toEqual(new Set([200]))
    world.identity.faults.set({ [fault]: 'broken' })

    const probes: number[] = []
    for (const second of range(6)) {
      const before = calls()
      const strangers = await callersOf(`stranger-${second}`, 20)
      const [served, refused] = await Promise.all([
        Promise.all(live.map((caller) => ask(caller))),
        Promise.all(strangers.map((caller) => ask(caller))),
      ])
      expect(new Set(served.map(({ status }) => status))).toEqual(new Set([200]))
      expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]))
      for (const { wait } of refused) expect([wait, wait >= 1 && wait <= 30]).toEqual([wait, true])
      probes.push(calls() - before)
      clock.advance(1_000)
    }
    // Calls in flight when the circuit opened; then one probe at a time, with its one retry.
    expect(probes[0]).toBeLessThanOrEqual(40)
    expect(Math.max(...probes.slice(1))).toBeLessThanOrEqual(2)
    expect(probes.slice(1).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
    const metrics = async () => (await fetch(`${world.proxy.adminUrl}/metrics`)).text()
    expect(await metrics()).toContain(`extauth_breaker_state{name="${route}"} 1`)
    // A reload makes new clients; what is known of the endpoint stays known.
    expect(await world.proxy.reload()).toEqual({ ok: true })
    expect(await metrics()).toContain(`extauth_breaker_state{name="${route}"} 1`)

    world.identity.faults.set({ [fault]: 'none' })
    clock.advance(31_000)
    expect(await world.status(route, await world.bearer({ sub: `${route}-first`, ...tokenFor(route) }))).toBe(200)
    const after = await callersOf('after', 10)
    expect(new Set(await Promise.all(after.map((caller) => world.status(route, caller))))).toEqual(new Set([200]))
    expect(await metrics()).toContain(`extauth_breaker_state{name="${route}"} 0`)
  }, 60_000)
})
