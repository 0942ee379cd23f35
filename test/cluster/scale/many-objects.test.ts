import { availableParallelism, loadavg } from 'node:os'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../support/control-plane.ts'
import { types } from '../support/operator-rig.ts'
import { createMany, isComplete, openScaleRig, type ScaleRig, untilAll } from '../support/scale-rig.ts'

const COUNT = 2_000
let rig: ScaleRig

beforeEach(async () => {
  rig = await openScaleRig()
}, 240_000)
afterEach(() => rig.close(), 60_000)

const say = (what: string, startedMs: number, endMs: number): void =>
  void process.stderr.write(`${what} in ${rig.figures(startedMs, endMs)}\n`)

/** On a machine that does other work too, it takes as much longer as there is to do. */
const share = (): number => Math.max(1, (loadavg()[0] ?? 0) / availableParallelism())

/** Nothing is in flight any more. */
const calm = (): Promise<void> =>
  eventually(async () => {
    const from = rig.requests()
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    expect(rig.writes(from)).toEqual({})
  }, 120_000)

test(`${COUNT} configs and ${COUNT} workloads: synced in 30 s, one edit is one write, an idle minute none`, async () => {
  const { client } = rig
  await createMany(client, COUNT, 'MCPServerEntry')
  const startedMs = Date.now()
  const starting = rig.start()
  const syncedMs = await untilAll(client, types.MCPExternalAuthConfig, COUNT, isComplete)
  await starting
  say(`${COUNT} configs and ${COUNT} workloads that were there before: synced`, startedMs, syncedMs)
  expect((syncedMs - startedMs) / share()).toBeLessThan(30_000)
  await calm()
  // The finalizer, the status, and the events of two conditions: each once; of a workload the status, and one event.
  expect(rig.writes()).toEqual({
    'patch mcpexternalauthconfigs': COUNT,
    'patch mcpexternalauthconfigs/status': COUNT,
    'patch mcpserverentries/status': COUNT,
    'create events': 3 * COUNT,
  })
  say('and all events of it', startedMs, Date.now())

  let before = rig.requests()
  const stored = await client.get(types.MCPExternalAuthConfig, 'default', 'c-7')
  const spec = { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }
  await client.update(types.MCPExternalAuthConfig, { ...stored, spec })
  await new Promise((resolve) => setTimeout(resolve, 5_000))
  expect(rig.writes(before)).toEqual({ 'patch mcpexternalauthconfigs/status': 1 })

  before = rig.requests()
  const idleMs = Date.now()
  await new Promise((resolve) => setTimeout(resolve, 60_000))
  expect(rig.writes(before)).toEqual({})
  say('an idle minute', idleMs, Date.now())
  expect(await rig.stop()).toBe(0)
}, 600_000)

test(`${COUNT} configs and ${COUNT} workloads that come while it runs: no state is written twice`, async () => {
  const { client } = rig
  await rig.start()
  const startedMs = Date.now()
  const synced = untilAll(client, types.MCPExternalAuthConfig, COUNT, isComplete)
  await createMany(client, COUNT, 'MCPServerEntry')
  const createdMs = Date.now()
  const syncedMs = await synced
  say(`${COUNT} configs and ${COUNT} workloads, created in ${createdMs - startedMs} ms: synced`, startedMs, syncedMs)
  expect((syncedMs - createdMs) / share()).toBeLessThan(30_000)
  await calm()
  const writes = rig.writes()
  expect(writes['patch mcpexternalauthconfigs']).toBe(COUNT)
  // With its workload, and before it was there.
  expect(writes['patch mcpexternalauthconfigs/status']).toBeLessThanOrEqual(2 * COUNT)
}, 600_000)

test('500 proxies: each object that they own is written once', async () => {
  const { client } = rig
  await createMany(client, 500, 'MCPRemoteProxy', {
    resourceUrl: 'https://mcp.example.com',
    oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
  })
  const startedMs = Date.now()
  const starting = rig.start()
  const configsMs = await untilAll(client, types.MCPExternalAuthConfig, 500, isComplete)
  const proxiesMs = await untilAll(client, types.MCPRemoteProxy, 500, ({ status }) =>
    JSON.stringify(status ?? {}).includes('DeploymentPending'),
  )
  await starting
  say(`500 configs in ${configsMs - startedMs} ms, with their proxies`, startedMs, proxiesMs)
  await calm()
  const { 'create events': _events, ...writes } = rig.writes()
  const objects = [
    'serviceaccounts',
    'configmaps',
    'networkpolicies',
    'deployments',
    'services',
    'poddisruptionbudgets',
  ]
  const own = ['mcpexternalauthconfigs', 'mcpexternalauthconfigs/status', 'mcpremoteproxies/status']
  expect(writes).toEqual(Object.fromEntries([...objects, ...own].map((resource) => [`patch ${resource}`, 500])))
}, 600_000)
