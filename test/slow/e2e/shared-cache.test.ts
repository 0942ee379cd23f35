import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { type Fleet, fleetFolder, openFleet } from '../../support/e2e/fleet.ts'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { extauth } from '../../support/e2e/process.ts'

let deployment: Deployment
let fleet: Fleet
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
  await fleet.close()
  await operate(port(), ['flushall'])
})

const port = () => deployment.nodes[0]?.port ?? 0
const open = async (size: number) => (fleet = await openFleet(size, deployment.sentinels))
const replica = (index: number) => {
  const found = fleet.replicas[index]
  if (found === undefined) throw new RangeError('no such replica')
  return found
}
const ask = (index: number, headers: Record<string, string>) => fleet.call(replica(index).url, headers)
const settled = { timeout: 10_000, interval: 20 }

describe('a fleet with one cache', () => {
  // A caller of type xaa has an assertion, and a token for it.
  it.each([
    ['one', 50, 50],
    ['own', 20, 1],
    ['obo', 20, 20],
    ['xaa', 20, 40],
  ])(
    'asks once for each credential at %s, and once more only where a replica says that Redis was too slow for it',
    async (route, people, credentials) => {
      await open(4)
      const callers = await Promise.all(
        Array.from({ length: people }, (_, index) => fleet.bearer(`user-${index}`, route)),
      )
      const answers = await Promise.all(
        callers.flatMap((caller) => fleet.replicas.map(({ url }) => fleet.call(url, caller, route))),
      )
      expect(answers.filter(({ status }) => status !== 200)).toEqual([])
      const [alone, made] = [await fleet.outcomes('alone'), await fleet.outcomes('made')]
      expect(made).toBeLessThanOrEqual(credentials)
      expect(fleet.fetches()).toBe(alone + made)
      expect(fleet.fetches()).toBeGreaterThanOrEqual(credentials)
    },
    60_000,
  )

  it('forgets everywhere within 2 s what one purges, and what the secret of one config made when that changes', async () => {
    await open(2)
    const [alice, bob] = [await fleet.bearer('alice'), await fleet.bearer('bob')]
    for (const index of [0, 1]) for (const caller of [alice, bob]) await ask(index, caller)
    expect(await fleet.sharedExchanges()).toBeLessThanOrEqual(2)
    const asked = fleet.exchanges()
    const startedAt = performance.now()
    expect(await fleet.admin(replica(0), '/cache?subject=alice', 'DELETE')).toEqual({
      purged: 1,
      notified: true,
      told: true,
      receivers: 2,
    })
    await vi.waitFor(async () => expect(await fleet.admin(replica(1), '/cache')).toMatchObject({ entries: 1 }), settled)
    expect(performance.now() - startedAt).toBeLessThan(2_000)
    for (const index of [0, 1]) for (const caller of [alice, bob]) expect((await ask(index, caller)).status).toBe(200)
    expect(fleet.exchanges()).toBeGreaterThan(asked)
    expect(await fleet.sharedExchanges()).toBeLessThanOrEqual(3)
  })

  it('keeps no token and no name of a caller in Redis where it can be read', async () => {
    await open(1)
    await ask(0, await fleet.bearer('alice'))
    await fleet.admin(replica(0), '/cache?subject=bob', 'DELETE')
    await vi.waitFor(async () => expect(await operate(port(), ['dbsize'])).toBeGreaterThan(1), settled)
    const dump: string[] = []
    for (const key of (await operate(port(), ['keys', '*'])) as string[]) {
      dump.push(key, String(await operate(port(), ['dump', key])), String(await operate(port(), ['get', key])))
      expect(Number(await operate(port(), ['pttl', key])), `time to live of ${key}`).toBeGreaterThan(0)
    }
    const sent = fleet.backend.requests('/one').at(-1)?.headers ?? []
    const exchanged = sent[sent.findIndex((word) => word.toLowerCase() === 'authorization') + 1] ?? ''
    expect(exchanged).toMatch(/^Bearer ey/)
    for (const word of [exchanged, exchanged.slice(7, 60), 'alice', 'bob', 'Bearer']) {
      expect(dump.join('\n')).not.toContain(word)
    }
  })
})

describe('sessions', () => {
  it('that begin at one replica continue at another for the same caller only', async () => {
    fleet = await openFleet(2, deployment.sentinels, { sessionKeySecretRef: { name: 'cache', key: 'seal' } })
    const [alice, bob] = [await fleet.bearer('alice'), await fleet.bearer('bob')]
    const begun = await post(`${replica(0).url}/one`, INITIALIZE, alice)
    await begun.arrayBuffer()
    const session = begun.headers.get('mcp-session-id') ?? ''
    expect(session).toContain('.')
    const list = async (caller: Record<string, string>) => {
      const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25', ...caller }
      const answer = await post(`${replica(1).url}/one`, { jsonrpc: '2.0', id: 2, method: 'tools/list' }, headers)
      await answer.arrayBuffer()
      return answer.status
    }
    expect(await list(alice)).toBe(200)
    expect(await list(bob)).toBe(404)
  })
})

describe('a replica that is killed while it asks', () => {
  it('costs one more call, and no caller waits longer than its lock lasts', async () => {
    await open(1)
    const folder = await fleetFolder(fleet)
    const args = ['--config', folder.directory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
    const dying = extauth(['proxy', ...args])
    cleanups.push(() => (dying.process.kill('SIGKILL'), dying.ended), folder.remove)
    const { url } = (await dying.line('listening')) as { url: string }
    // Its first Redis commands take long on a busy machine, and a request that waits too long proceeds without a lock.
    const bob = await fleet.bearer('bob')
    expect((await fleet.call(url, bob)).status).toBe(200)
    fleet.identity.faults.set({ exchange: 'slow', slowMs: 60_000 })
    const alice = await fleet.bearer('alice')
    fleet.call(url, alice).catch(() => undefined)
    await vi.waitFor(() => expect(fleet.exchanges()).toBe(2), settled)
    dying.process.kill('SIGKILL')
    await dying.ended
    fleet.identity.faults.set({ exchange: 'none' })
    const answer = await ask(0, alice)
    expect(answer.status).toBe(200)
    expect(answer.tookMs).toBeGreaterThan(500)
    expect(answer.tookMs).toBeLessThan(15_000)
    expect(fleet.exchanges()).toBe(3)
  }, 60_000)
})

describe('without Redis', () => {
  it('no caller gets an error or waits, and afterwards everything is shared again', async () => {
    await open(2)
    const known = await Promise.all(Array.from({ length: 10 }, (_, index) => fleet.bearer(`known-${index}`)))
    for (const index of [0, 1]) for (const caller of known) await ask(index, caller)
    expect(await fleet.sharedExchanges()).toBeLessThanOrEqual(10)
    const asked = fleet.exchanges()
    deployment.nodes[0]?.pause()
    const isAlone = (index: number) => fleet.metric(replica(index), /extauth_shared_credentials_alone/)
    try {
      const strangers = await Promise.all(Array.from({ length: 10 }, (_, index) => fleet.bearer(`new-${index}`)))
      for (let round = 0; round < 10; round += 1) {
        const answers = await Promise.all([...known, ...strangers].flatMap((one) => [ask(0, one), ask(1, one)]))
        expect(answers.filter(({ status }) => status !== 200)).toEqual([])
      }
      expect(fleet.exchanges()).toBe(asked + 20)
      // A single failure is not enough, and overlapping failures count once.
      let more = 0
      await vi.waitFor(async () => {
        expect((await ask(0, await fleet.bearer(`more-${more++}`))).status).toBe(200)
        expect(await isAlone(0)).toBe(1)
      }, settled)
      const fresh = await ask(0, await fleet.bearer('another-user'))
      expect(fresh.tookMs, 'no wait once it is known').toBeLessThan(1_000)
    } finally {
      deployment.nodes[0]?.resume()
    }
    for (const index of [0, 1]) await vi.waitFor(async () => expect(await isAlone(index)).toBe(0), settled)
    const before = await fleet.sharedExchanges()
    const later = await fleet.bearer('later')
    for (const index of [0, 1]) expect((await ask(index, later)).status).toBe(200)
    expect(await fleet.sharedExchanges()).toBeLessThanOrEqual(before + 1)
    expect((await ask(1, await fleet.bearer('another-user'))).status).toBe(200)
  }, 60_000)
})
