import { createServer } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTestSecrets } from '../../support/ports.ts'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { bytes } from '../../support/storage/worlds.ts'

let deployment: Deployment
const replicas: Replica[] = []
const sockets = createSockets()

beforeAll(async () => {
  deployment = await startDeployment({ replicas: 2, sentinels: 3, tls: true })
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const { stores } of replicas.splice(0)) await stores.close()
  await sockets.closeAll()
})

const replicaOf = (overrides: Parameters<Deployment['config']>[0] = {}, scope = newScope()): Replica => {
  const replica = createReplica(deployment.config(overrides), scope)
  replicas.push(replica)
  return replica
}
const otherSecrets = createTestSecrets({
  ca: TLS.ca.toString(),
  otherCa: TLS.otherCa.toString(),
  both: `${TLS.ca.toString()}\n${TLS.otherCa.toString()}`,
})
const trusting = (label: string) => ({ ca: otherSecrets.get(label), insecureSkipVerify: false })

describe('TLS', () => {
  it('to the master and to the sentinels by an authority each', async () => {
    const { store, log } = replicaOf()
    await store.put('a', bytes('1'), 60_000)
    expect((await store.get('a'))?.value).toEqual(bytes('1'))
    expect(log.lines.join('\n')).not.toContain('insecureSkipVerify')
  })

  it.each([
    ['the sentinels show another authority’s certificate', { sentinelTls: trusting('ca') }, 'no sentinel responds'],
    ['the sentinels want TLS and only the master’s is configured', { sentinelTls: undefined }, 'no sentinel responds'],
    [
      'the sentinels want TLS, and what is configured for the master would do for them',
      { tls: trusting('both'), sentinelTls: undefined },
      'no sentinel responds',
    ],
    ['the master shows another authority’s certificate', { tls: trusting('otherCa') }, /CERT|SIGNATURE/],
    ['the authority of the master can’t be read', { tls: trusting('missing') }, 'secret_unavailable'],
    [
      'no authority is named, and the system knows none of this name',
      { tls: { ca: undefined, insecureSkipVerify: false } },
      /CERT|SIGNATURE/,
    ],
  ])('refuses when %s', async (_name, overrides, detail) => {
    const { store } = replicaOf(overrides)
    await expect(store.get('a')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(store.health().detail).toMatch(detail)
  })

  it('without verification says so in the log', async () => {
    const careless = { ca: undefined, insecureSkipVerify: true }
    const { store, log } = replicaOf({ tls: careless, sentinelTls: careless })
    await store.put('a', bytes('1'), 60_000)
    const warnings = log.lines.filter((line) => line.includes('insecureSkipVerify'))
    expect(warnings).toHaveLength(2)
    expect(warnings.join('\n')).toMatch(/"field":"tls"[^]*"field":"sentinelTls"/)
  })

  it('older than 1.2 is rejected', async () => {
    let sessions = 0
    const old = createServer(
      { ...TLS.otherServer, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' },
      () => (sessions += 1),
    )
    const address = await sockets.listen(old)
    const { store } = replicaOf({ sentinels: [{ host: '127.0.0.1', port: Number(address.split(':')[1]) }] })
    await expect(store.get('a')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(sessions).toBe(0)
  })
})

describe('a master that is killed', () => {
  it('loses no write that a replica acknowledged, and all clients find the next one', async () => {
    const scope = newScope()
    const [one, two] = [replicaOf({ waitReplicas: 1 }, scope), replicaOf({ waitReplicas: 1 }, scope)]
    const gaps: string[] = []
    const heard: string[] = []
    for (const { store } of [one, two]) {
      store.subscribe('news', { onMessage: (text) => heard.push(text), onGap: () => gaps.push('gap') })
    }
    const written: string[] = []
    const problems = new Set<string>()
    const lastAt = { ok: performance.now() }
    let longestGapMs = 0
    const ending = new AbortController()
    const write = async ({ store }: Replica, name: string) => {
      for (let count = 0; !ending.signal.aborted; count += 1) {
        const key = `${name}-${count}`
        try {
          await store.put(key, bytes(key), 300_000)
          written.push(key)
          longestGapMs = Math.max(longestGapMs, performance.now() - lastAt.ok)
          lastAt.ok = performance.now()
        } catch (error) {
          problems.add(String(error))
        }
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    const writers = [write(one, 'a'), write(one, 'b'), write(two, 'c'), write(two, 'd')]
    await expect.poll(() => written.length, { timeout: 20_000 }).toBeGreaterThan(200)

    await deployment.nodes[0]?.kill()
    const before = written.length
    await expect.poll(() => written.length, { timeout: 60_000 }).toBeGreaterThan(before + 200)
    ending.abort()
    await Promise.all(writers)

    for (const key of written) expect((await two.store.get(key))?.value.toString(), 'a lost write').toBe(key)
    expect(longestGapMs, 'time to recover').toBeLessThan(45_000)
    for (const problem of problems) expect(problem).toMatch(/store (unavailable|timeout|too_few_replicas)$/)
    for (const { metrics } of [one, two]) expect(metrics.value('extauth_store_failovers_total')).toBeGreaterThan(0)
    await expect.poll(() => gaps.length, { timeout: 20_000 }).toBeGreaterThan(2)
    heard.length = 0
    await expect
      .poll(() => one.store.publish('news', 'after').then(() => heard.length), { timeout: 20_000 })
      .toBeGreaterThan(1)
    // The replica that is left may be catching up with the new master.
    await expect
      .poll(() => one.store.put('settled', bytes('1'), 60_000).then(() => true), { timeout: 30_000 })
      .toBe(true)
    // Every code that was stored is good exactly once after it, too.
    const taken = await Promise.all(written.slice(0, 50).flatMap((key) => [one.store.take(key), two.store.take(key)]))
    expect(taken.filter((found) => found !== undefined)).toHaveLength(50)
  }, 150_000)
})
