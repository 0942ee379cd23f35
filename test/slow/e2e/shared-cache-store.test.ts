import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { type Fleet, fleetFolder, openFleet } from '../../support/e2e/fleet.ts'
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
const settled = { timeout: 10_000, interval: 20 }

/** A proxy as a process of its own. */
async function startProxy() {
  const folder = await fleetFolder(fleet)
  const proxy = extauth(['proxy', '--config', folder.directory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
  cleanups.push(() => (proxy.process.kill('SIGKILL'), proxy.ended), folder.remove)
  const { url, admin } = (await proxy.line('listening')) as { url: string; admin: string }
  return { proxy, url, admin }
}

describe('what is wrong with the store', () => {
  it.each([
    ['OOM', ['config', 'set', 'maxmemory', '1'], ['config', 'set', 'maxmemory', '0']],
    ['NOPERM', ['acl', 'setuser', 'extauth', '-set'], ['acl', 'setuser', 'extauth', '+set']],
    ['NOREPLICAS', ['config', 'set', 'min-replicas-to-write', '3'], ['config', 'set', 'min-replicas-to-write', '0']],
  ])('is logged by the program: %s', async (cause, harm, repair) => {
    fleet = await openFleet(0, deployment.sentinels)
    const { proxy, url, admin } = await startProxy()
    expect((await fleet.call(url, await fleet.bearer('alice'))).status).toBe(200)
    await operate(port(), harm)
    try {
      for (const name of ['b', 'c', 'd', 'e']) {
        expect((await fleet.call(url, await fleet.bearer(name))).status).toBe(200)
      }
      const line = await proxy.line('shared credential store unavailable; using the local cache')
      expect(line).toMatchObject({ level: 40, cause, host: '127.0.0.1', port: port() })
      const metrics = await (await fetch(`${admin}/metrics`)).text()
      expect(metrics).toContain(`extauth_shared_credentials_departures_total{cause="${cause}"} 1\n`)
      expect(metrics).toContain(`extauth_store_failures_total{cause="${cause}"}`)
    } finally {
      await operate(port(), repair)
    }
  })
})

describe('waitReplicas', () => {
  it('delays no credential, and costs no call, while a replica of Redis is away', async () => {
    fleet = await openFleet(2, deployment.sentinels, {}, { waitReplicas: 1 })
    const tookMs: number[] = []
    for (const name of ['alice', 'bob', 'carol', 'dora', 'emil', 'fred']) {
      const caller = await fleet.bearer(name)
      for (const { url } of fleet.replicas) {
        const answer = await fleet.call(url, caller)
        expect(answer.status).toBe(200)
        if (url === fleet.replicas[0]?.url) tookMs.push(answer.tookMs)
      }
    }
    // Each new credential would wait for a full second.
    expect(Math.min(...tookMs)).toBeLessThan(900)
    expect(await fleet.sharedExchanges()).toBeLessThanOrEqual(6)
    expect(await operate(port(), ['client', 'list'])).not.toMatch(/cmd=wait/)
  })
})

describe('DELETE /cache', () => {
  it('reports that the store was unavailable, and publishes the purge when it is back', async () => {
    fleet = await openFleet(2, deployment.sentinels)
    const [first, second] = fleet.replicas
    if (first === undefined || second === undefined) throw new RangeError('two')
    const alice = await fleet.bearer('alice')
    for (const { url } of fleet.replicas) await fleet.call(url, alice)
    deployment.nodes[0]?.pause()
    try {
      const answer = await fetch(`${first.adminUrl}/cache?subject=alice`, { method: 'DELETE' })
      expect(answer.status).toBe(202)
      expect(await answer.json()).toMatchObject({
        purged: 1,
        notified: false,
        told: false,
        detail: expect.stringContaining('store'),
      })
    } finally {
      deployment.nodes[0]?.resume()
    }
    await vi.waitFor(async () => expect(await fleet.admin(second, '/cache')).toMatchObject({ entries: 0 }), settled)
  })
})
