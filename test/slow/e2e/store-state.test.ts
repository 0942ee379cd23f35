import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { operate } from '../../support/redis/operator.ts'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { type Fleet, fleetFolder, openFleet } from '../../support/e2e/fleet.ts'
import { extauth } from '../../support/e2e/process.ts'

let deployment: Deployment
let fleet: Fleet
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  deployment = await startDeployment()
  fleet = await openFleet(0, deployment.sentinels)
}, 180_000)
afterAll(async () => {
  await fleet.close()
  await deployment.close()
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

const redis = (...command: (string | Buffer)[]) => operate(deployment.nodes[0]?.port ?? 0, command)
const settled = { timeout: 20_000, interval: 50 }

async function folder(): Promise<string> {
  const { directory, remove } = await fleetFolder(fleet)
  cleanups.push(remove)
  return directory
}

async function startProxy() {
  const args = ['proxy', '--config', await folder(), '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  const proxy = extauth(args)
  cleanups.unshift(() => (proxy.process.kill('SIGKILL'), proxy.ended))
  const { admin } = (await proxy.line('listening')) as { admin: string }
  const metrics = async () => (await fetch(`${admin}/metrics`)).text()
  const readiness = async () => {
    const answer = await fetch(`${admin}/readiness`)
    return { status: answer.status, body: (await answer.json()) as object }
  }
  return { proxy, metrics, readiness }
}

/** Lines of `check` about the store and the time. */
async function checked(): Promise<string> {
  const check = extauth(['check', '-v', '--config', await folder()])
  await check.ended
  return check.stdout()
}

const degraded = (remark: RegExp) => ({
  status: 200,
  body: { status: 'degraded', detail: { stores: [expect.stringMatching(remark)] } },
})

describe('a store that throws keys away when it is full', () => {
  it('is reported by log, readiness, metric and check', async () => {
    await redis('config', 'set', 'maxmemory-policy', 'allkeys-lru')
    try {
      const { proxy, metrics, readiness } = await startProxy()
      const line = await proxy.line('store evicts data when its memory is full, set maxmemory-policy noeviction')
      expect(line).toMatchObject({ level: 40, policy: 'allkeys-lru', host: '127.0.0.1' })
      expect(await readiness()).toMatchObject(degraded(/maxmemory-policy is allkeys-lru/))
      expect(await metrics()).toContain('extauth_store_evicts 1\n')
      expect(await checked()).toMatch(/maxmemory-policy is allkeys-lru/)
    } finally {
      await redis('config', 'set', 'maxmemory-policy', 'noeviction')
    }
  }, 60_000)

  it('is none with noeviction, and check says how far its clock is away', async () => {
    const { metrics, readiness } = await startProxy()
    await expect.poll(metrics, settled).toContain('extauth_store_evicts 0\n')
    await expect.poll(readiness, settled).toMatchObject({ status: 200, body: { status: 'ready' } })
    const text = await checked()
    // In the order in which they answered.
    expect(text).toMatch(/\bstore\b.* within \d s/)
    expect(text).not.toMatch(/maxmemory|INFO/)
  }, 60_000)

  it('is not known where INFO is refused, which is said once', async () => {
    await redis('acl', 'setuser', 'extauth', '-info')
    try {
      const { proxy, readiness } = await startProxy()
      await proxy.line('store user may not call INFO, eviction policy unknown (grant +info)')
      expect(await readiness()).toMatchObject({ status: 200, body: { status: 'ready' } })
      expect(await checked()).toMatch(/lacks the permission for INFO[^]*\+info/)
      expect(proxy.stderr().split('call INFO')).toHaveLength(2)
    } finally {
      await redis('acl', 'setuser', 'extauth', '+info')
    }
  }, 60_000)
})

describe('a store that lost what was in it', () => {
  it('is reported by log, readiness and metric; a first start is no loss', async () => {
    await redis('flushall')
    const { proxy, metrics, readiness } = await startProxy()
    await expect.poll(async () => String(await redis('keys', '*:mark')), settled).toMatch(/^extauth:/)
    expect(await metrics()).toContain('extauth_store_losses_total 0\n')
    await redis('flushall')
    expect(await proxy.line('store lost its data: it restarted empty, was flushed, or evicts')).toMatchObject({
      level: 40,
      host: '127.0.0.1',
    })
    expect(await readiness()).toMatchObject(degraded(/it has lost its data/))
    expect(await metrics()).toContain('extauth_store_losses_total 1\n')
  }, 60_000)
})

describe('a user that lacks permissions', () => {
  it.each([
    ['+time', ['-time'], ['+time'], /its user lacks \+time/],
    ['+subscribe', ['-subscribe'], ['+subscribe'], /its user lacks \+subscribe/],
    ['several', ['-getdel', '-zadd'], ['+getdel', '+zadd'], /its user lacks \+getdel \+zadd/],
    ['channels', ['resetchannels'], ['&extauth:*'], /its user lacks &extauth:\*/],
  ])(
    'is named by check: %s',
    async (_name, harm, repair, expected) => {
      await redis('acl', 'setuser', 'extauth', ...harm)
      try {
        expect(await checked()).toMatch(expected)
      } finally {
        await redis('acl', 'setuser', 'extauth', ...repair)
      }
    },
    60_000,
  )

  it('shows in readiness where credentials cannot be shared', async () => {
    await redis('acl', 'setuser', 'extauth', '-time', '-subscribe')
    try {
      const { readiness, proxy } = await startProxy()
      const { url } = (await proxy.line('listening')) as { url: string }
      for (const name of ['a', 'b', 'c', 'd']) await fleet.call(url, await fleet.bearer(name))
      const remarks = async () => JSON.stringify(await readiness())
      await expect.poll(remarks, settled).toMatch(/messages of other replicas are not received/)
      expect(await remarks()).toMatch(/credentials are not shared with other replicas: its user lacks a permission/)
      expect(await readiness()).toMatchObject({ status: 200, body: { status: 'degraded' } })
    } finally {
      await redis('acl', 'setuser', 'extauth', '+time', '+subscribe')
    }
  }, 60_000)
})

it('a record of purges that no secret opens is named by check', async () => {
  const key = (String(await redis('keys', '*:v:mark')).split(',')[0] ?? '').replace(/mark$/, 'purges')
  const sealed = Buffer.concat([Buffer.from(`version-aaaa${'0'.repeat(16)}`), Buffer.from([1]), Buffer.alloc(60, 7)])
  await redis('set', key, sealed, 'PX', '60000')
  expect(await checked()).toContain('the purge log is sealed with a secret that is not in keySecretRefs')
  await redis('del', key)
}, 60_000)
