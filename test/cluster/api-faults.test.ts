import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KubeClient, type KubeConnection, LEASES } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, NAMES } from '../../src/operator/index.ts'
import { type ControlPlane, eventually, startControlPlane } from './support/control-plane.ts'
import { answer, endure, inWatches, line, tooSoon } from './support/endure.ts'
import type { Fault, Seen } from './support/fault-proxy.ts'
import {
  auditOf,
  change,
  counted,
  expectConverged,
  type FaultyOperator,
  holder,
  isReady,
  startFaultyOperator,
  userLines,
} from './support/faulty-operator.ts'
import { connect, installDefinitions, namespaceObject } from './support/operator-rig.ts'

// Each operator is a process with a namespace and a way to the API server of its own, so that their troubles run beside each
// other. That of the half-open connections begins first and is looked at last: silence takes its time.
const USERS = ['throttled', 'broken', 'refused', 'first', 'second', 'killed', 'heir', 'silent'] as const
type User = (typeof USERS)[number]

/** The collections that the changes of a test arrive through, and some more. */
const COLLECTIONS = [
  'mcpexternalauthconfigs',
  'mcpserverentries',
  'mcpremoteproxies',
  'pods',
  'deployments',
  'configmaps',
]
/** Longer than any event can be. */
const TORRENT = Buffer.alloc(17 * 1024 * 1024, 0x20)

let plane: ControlPlane
let connection: KubeConnection
let client: KubeClient
const cluster = {
  get plane() {
    return plane
  },
  get client() {
    return client
  },
}
const operators = new Map<User, FaultyOperator>()
const operatorOf = (user: User): FaultyOperator => {
  const found = operators.get(user)
  if (found === undefined) throw new Error(`${user} was not started`)
  return found
}
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const start = async (user: User, namespace?: string): Promise<void> => {
  operators.set(user, await startFaultyOperator(plane, client, user, namespace))
}
/** Makes the first round of changes and waits until the operator has done its part. */
const settle = async (user: User): Promise<void> => {
  const operator = operatorOf(user)
  await isReady(operator)
  await change(client, operator.namespace, 0)
  await eventually(() => expectConverged(client, operator.namespace, 0), 90_000)
}
/** Gives the lease of a namespace to a holder for an hour. */
const leaseTo = async (holderIdentity: string, namespace: string): Promise<void> => {
  const metadata = { name: NAMES.lease, namespace }
  const spec = { holderIdentity, leaseDurationSeconds: holderIdentity === '' ? 1 : 3600 }
  await client.apply(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec })
}
const within = <T>(promise: Promise<T>, ms: number): Promise<T | 'too late'> =>
  Promise.race([promise, sleep(ms).then(() => 'too late' as const)])
let mutedAtMs = 0

beforeAll(async () => {
  plane = await startControlPlane({ controllers: false, users: USERS.map(userLines).join('') })
  connection = connect(plane)
  client = connection.client
  await installDefinitions(client)
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject('silent'))
  // It follows: only the test ends this lease.
  await leaseTo('another', 'silent')
  await start('silent')
  await isReady(operatorOf('silent'))
  // Read, and followed.
  const { requests } = operatorOf('silent').proxy
  const resourcesOf = (verb: string): string[] =>
    requests.filter((seen) => seen.verb === verb && seen.status === 200).map(({ resource }) => resource)
  await eventually(() => expect(resourcesOf('watch').sort()).toEqual(resourcesOf('list').sort()))
  operatorOf('silent').proxy.muteWatches('mcpserverentries')
  mutedAtMs = performance.now()
  await change(client, 'silent', 0)
  for (const user of ['throttled', 'broken', 'refused', 'killed'] as const) await start(user)
  await start('first', 'elected')
  await Promise.all((['throttled', 'broken', 'refused', 'killed', 'first'] as const).map(settle))
  await start('second', 'elected')
  await start('heir', 'killed')
}, 240_000)

afterAll(async () => {
  await Promise.all([...operators.values()].map((operator) => operator.close()))
  await connection?.close()
  await plane?.close()
}, 60_000)

describe.concurrent('the operator goes on through', () => {
  test('429 and 5xx, and rests when it is asked to', async () => {
    const operator = operatorOf('throttled')
    const throttled = await endure(cluster, operator, {
      fault: () => answer(429, 'TooManyRequests', { 'retry-after': '3' }),
    })
    expect(tooSoon(throttled, 3)).toEqual([])
    for (const [status, reason] of [
      [429, 'TooManyRequests'],
      [500, 'InternalError'],
      [504, 'Timeout'],
    ] as const)
      await endure(cluster, operator, { fault: () => answer(status, reason) })
  }, 240_000)

  test('watches that are cut, torn, expired or full of nonsense', async () => {
    const operator = operatorOf('broken')
    const bookmark = ({ query }: Seen): string =>
      line('BOOKMARK', { metadata: { resourceVersion: query.get('resourceVersion') } })
    // What needs no end of the fault: a version that is forgotten, in a watch and between two pages, a type that nobody
    // knows, and one event without an end.
    const gone = line('ERROR', { kind: 'Status', code: 410, reason: 'Expired' })
    let torrents = 1
    const faults: Readonly<Record<string, (request: Seen) => Fault | undefined>> = {
      mcpserverentries: inWatches(gone, 'end'),
      mcpexternalauthconfigs: inWatches(line('SURPRISE', { metadata: { name: 'x' } }), 'go on'),
      mcpremoteproxies: (request) => {
        const { query } = request
        if (request.verb === 'watch') return torrents-- > 0 ? inWatches(TORRENT, 'end')(request) : undefined
        if (query.has('continue')) return answer(410, 'Expired')
        const change = (body: string): string => body.replace(/"metadata":\{(?=[^{}]*\}\s*$)/, '$&"continue":"x",')
        return request.verb === 'list' && query.has('limit') ? { do: 'change', change } : undefined
      },
    }
    await endure(cluster, operator, {
      fault: (request) => faults[request.resource]?.(request),
      isHarmless: true,
    })
    // Each collection has a trouble of its own, and another one in the next round.
    const troubles: ((request: Seen) => Fault | undefined)[] = [
      () => ({ do: 'reset' }),
      (request) => inWatches(bookmark(request), 'reset')(request),
      inWatches('{"type":"ADDED","object":{"metad', 'reset'),
      inWatches(Buffer.of(0x7b, 0xff, 0x7d, 0x0a), 'end'),
      () => ({ do: 'answer', status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' }),
      ({ verb }) => (verb === 'watch' || verb === 'list' ? answer(200, 'Success') : undefined),
    ]
    for (const first of [0, 3]) {
      const fault = (request: Seen) => {
        const at = COLLECTIONS.indexOf(request.resource)
        return at === -1 ? undefined : troubles[(at + first) % troubles.length]?.(request)
      }
      await endure(cluster, operator, { fault })
    }
    expect(await operator.metric('extauth_operator_watch_restarts_total', 'reason="expired"')).toBeGreaterThan(0)
  }, 240_000)

  test('a token that was replaced, rights that were taken away, and conflicts', async () => {
    const operator = operatorOf('refused')
    // The first token is refused from now on; the file has the second one after a while, without a restart.
    const isOld = ({ token }: Seen): boolean => token.startsWith('token-old')
    setTimeout(() => operator.useToken('new'), 3_000)
    const fault = (request: Seen) => (isOld(request) ? answer(401, 'Unauthorized') : undefined)
    await endure(cluster, operator, { fault, isHarmless: true })
    await endure(cluster, operator, { fault: () => answer(403, 'Forbidden') })
    await endure(cluster, operator, {
      fault: ({ verb, resource }) => (verb === 'patch' || resource === 'pods' ? answer(409, 'Conflict') : undefined),
    })
    expect(await operator.metric('extauth_operator_watch_restarts_total', 'reason="refused"')).toBeGreaterThan(0)
    // All is silent, new connections too: a stop is a stop.
    operator.proxy.fault = () => ({ do: 'swallow' })
    operator.running.process.kill('SIGTERM')
    expect(await within(operator.running.ended, 30_000)).toBe(0)
  }, 240_000)

  test('one silent connection of the lease; who cannot renew it ends before anybody else may act', async () => {
    const [first, second] = [operatorOf('first'), operatorOf('second')]
    const { namespace } = first
    const before = await holder(client, namespace)
    let silences = 1
    first.proxy.fault = ({ verb, resource }) =>
      resource === 'leases' && verb === 'get' && silences-- > 0 ? { do: 'swallow' } : undefined
    await sleep(13_000)
    expect(silences).toBeLessThanOrEqual(0)
    expect([await holder(client, namespace), first.running.process.exitCode]).toEqual([before, null])

    first.proxy.fault = ({ verb, resource }) =>
      resource === 'leases' && verb === 'update' ? answer(500, 'InternalError') : undefined
    let round = 1
    const over = new AbortController()
    const changing = (async () => {
      for (; !over.signal.aborted; round++) {
        await change(client, namespace, round)
        await sleep(500)
      }
    })()
    expect(await within(first.running.ended, 25_000)).toBe(1)
    await eventually(async () => expect([before, '']).not.toContain(await holder(client, namespace)), 25_000)
    await sleep(2_000)
    over.abort()
    await changing
    await change(client, namespace, round)
    await eventually(() => expectConverged(client, namespace, round), 40_000)

    const isWrite = ({ verb }: { verb: string }): boolean => !['get', 'list', 'watch'].includes(verb)
    const writesOf = (user: string) =>
      auditOf(plane, user)
        .filter(isWrite)
        .map(({ objectRef, requestReceivedTimestamp }) => ({
          isLease: objectRef?.resource === 'leases',
          atMs: Date.parse(requestReceivedTimestamp),
        }))
    const renewedMs = Math.max(...writesOf('first').map(({ isLease, atMs }) => (isLease ? atMs : 0)))
    const lastMs = Math.max(...writesOf('first').map(({ atMs }) => atMs))
    const takenMs = Math.min(...writesOf('second').map(({ atMs }) => atMs))
    // A write that was sent before the deadline of 10 s may arrive after it; others wait 15 s.
    expect(lastMs - renewedMs).toBeLessThan(12_000)
    expect(takenMs).toBeGreaterThan(lastMs)

    // The lease's writes get no answer at all, now at the other one.
    second.proxy.fault = ({ verb, resource }) =>
      resource === 'leases' && verb === 'update' ? { do: 'swallow' } : undefined
    expect(await within(second.running.ended, 25_000)).toBe(1)
  }, 240_000)
})

test('an API server that is killed and started again: who follows goes on after a real 410, and takes over', async () => {
  const [leader, heir] = [operatorOf('killed'), operatorOf('heir')]
  const { namespace } = leader
  await isReady(heir)
  const from = heir.proxy.requests.length
  await plane.stop('kube-apiserver')
  expect(await within(leader.running.ended, 30_000)).toBe(1)
  expect(await heir.readiness()).toMatchObject({ status: 503 })
  const asked = Object.entries(counted(heir.proxy.requests.slice(from)))
  expect(asked.filter(([, count]) => count > 20)).toEqual([])
  await plane.start('kube-apiserver')
  await change(client, namespace, 1)
  await eventually(() => expectConverged(client, namespace, 1), 60_000)
  expect(await heir.metric('extauth_operator_watch_restarts_total', 'reason="expired"')).toBeGreaterThan(0)
  expect(heir.running.process.exitCode).toBeNull()
  await isReady(heir)
}, 180_000)

test('connections that fall silent without an end are found after 100 s, also when bytes drip from one', async () => {
  const { proxy, namespace, ...operator } = operatorOf('silent')
  const watchesSince = (ms: number): string[] =>
    proxy.requests.filter(({ verb, atMs }) => verb === 'watch' && atMs > ms).map(({ resource }) => resource)
  const followed = proxy.requests.filter(({ verb, atMs }) => verb === 'watch' && atMs < mutedAtMs)
  await sleep(Math.max(0, mutedAtMs + 103_000 - performance.now()))
  const kinds = (resources: readonly string[]): string[] => [...new Set(resources)].sort()
  await eventually(
    () => expect(kinds(watchesSince(mutedAtMs))).toEqual(kinds(followed.map(({ resource }) => resource))),
    20_000,
  )
  expect(await operator.metric('extauth_operator_watch_restarts_total', 'reason="lost"')).toBeGreaterThanOrEqual(
    followed.length,
  )
  await leaseTo('', namespace)
  await eventually(() => expectConverged(client, namespace, 0), 40_000)
}, 240_000)
