import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../lab/index.ts'
import type { KubeClient, KubeConnection } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, NAMES } from '../../src/operator/index.ts'
import { extauth, type Running } from '../support/e2e/process.ts'
import { type Balancer, startBalancer } from './support/balancer.ts'
import { type ControlPlane, eventually, startControlPlane } from './support/control-plane.ts'
import { config, connect, installDefinitions, installWebhooks, types } from './support/operator-rig.ts'

// Two processes as a cluster runs them, behind one address, under writes that all pass their webhooks. Their certificate
// lives 30 s, so that it is renewed all the time.
let plane: ControlPlane
let connection: KubeConnection
let client: KubeClient
let balancer: Balancer
let ports: readonly number[]
const replicas: Running[] = []

function startReplica(port: number): Running {
  const args = [
    'operator',
    '--kubeconfig',
    plane.kubeconfigPath,
    '--operator-namespace',
    'default',
    '--log-level',
    'debug',
  ]
  const webhook = ['--webhook-address', `127.0.0.1:${port}`, '--webhook-names', '127.0.0.1', '--admin', '127.0.0.1:0']
  return extauth([...args, ...webhook, '--webhook-cert-lifetime', '30s'])
}

beforeAll(async () => {
  plane = await startControlPlane({ controllers: false })
  connection = connect(plane)
  client = connection.client
  await installDefinitions(client)
  ports = [await freePort(), await freePort()]
  balancer = await startBalancer(ports)
  replicas.push(...ports.map(startReplica))
  await installWebhooks(client, 'default', balancer.port)
}, 240_000)

afterAll(async () => {
  for (const replica of replicas) replica.process.kill('SIGKILL')
  await balancer?.close()
  await connection?.close()
  await plane?.close()
}, 60_000)

const isReady = async (replica: Running): Promise<void> => {
  const { admin } = await replica.line('listening')
  await eventually(async () => {
    const answer = await fetch(`${String(admin)}/readiness`)
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
  }, 40_000)
}
const holder = async (): Promise<string> => {
  const type = { ...CLUSTER_TYPES.Pod, group: 'coordination.k8s.io', kind: 'Lease', plural: 'leases' }
  const lease = await client.get(type, 'default', NAMES.lease)
  return (lease.spec as { holderIdentity?: string }).holderIdentity ?? ''
}
const leads = (replica: Running): boolean => replica.stderr().includes('"leadership acquired"')
/** Waits until another replica than `before` acts; returns the milliseconds that it took. */
async function takeover(before: string, withinMs: number): Promise<number> {
  const startMs = Date.now()
  await eventually(async () => expect([before, '']).not.toContain(await holder()), withinMs)
  return Date.now() - startMs
}

/** The response of an API server (500, which clients retry) when the webhook process is gone. */
const CUT_OFF = /failed calling webhook.*(EOF|connection reset by peer|broken pipe)/

/**
 * Up to 50 valid writes a second while `during` goes on; what was refused, and how many had to be repeated. No more than 16
 * wait at a time: on a busy machine there are fewer, instead of a queue that only grows until all are too late.
 */
async function refusedWhile(
  during: () => Promise<unknown>,
): Promise<{ refused: string[]; repeated: number; written: number }> {
  const refused: string[] = []
  let repeated = 0
  const writes = new Set<Promise<unknown>>()
  let at = 0
  const timer = setInterval(() => {
    if (writes.size >= 16) return
    const name = `load-${at % 25}`
    const spec = { type: 'upstreamInject', upstreamInject: { providerName: `p${at++}` } }
    // A review may take 3 s, and is begun late on a busy machine: what the API server says of it is to be seen.
    const write = () => client.apply(types.MCPExternalAuthConfig, config(name, 'default', spec), { deadlineMs: 25_000 })
    const attempt = async (times: number): Promise<unknown> => {
      try {
        return await write()
      } catch (error) {
        if (times === 0 || !CUT_OFF.test((error as Error).message)) throw error
        repeated += 1
        return attempt(times - 1)
      }
    }
    // Several connections of the API server may lead to the process that is gone.
    const writing = attempt(3)
      .catch((error: unknown) => void refused.push((error as Error).message))
      .finally(() => writes.delete(writing))
    writes.add(writing)
  }, 20)
  try {
    await during()
  } finally {
    clearInterval(timer)
    await Promise.all(writes)
  }
  return { refused, repeated, written: at }
}

test('of two replicas that are asked up to 50 times a second, each may go, and the certificate is renewed: nothing is refused', async () => {
  // Tried again, it begins with two that run as well.
  for (const [index, port] of ports.entries()) {
    const { exitCode, signalCode } = replicas[index]?.process ?? { exitCode: 0, signalCode: null }
    if (exitCode !== null || signalCode !== null) replicas[index] = startReplica(port)
    balancer.remember(port)
  }
  await Promise.all(replicas.map(isReady))
  const [leader, other] = leads(replicas[0] as Running) ? [0, 1] : [1, 0]
  const issued = (replica: Running): number => replica.stderr().split('webhook certificate issued').length - 1

  const killed = await refusedWhile(async () => {
    const before = await holder()
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    replicas[leader]?.process.kill('SIGKILL')
    expect(await takeover(before, 30_000)).toBeLessThan(20_000)
  })
  expect(killed.refused).toEqual([])
  // The work of the killed process at that moment, and nothing else.
  expect(killed.repeated).toBeLessThan(10)
  expect(killed.written).toBeGreaterThan(50)

  replicas[leader] = startReplica(ports[leader] ?? 0)
  await isReady(replicas[leader])
  const released = await refusedWhile(async () => {
    const before = await holder()
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    replicas[other]?.process.kill('SIGTERM')
    // Released, not timed out: an unrenewed lease changes its holder only after 15 s.
    expect(await takeover(before, 12_000)).toBeLessThan(10_000)
    balancer.forget(ports[other] ?? 0)
    expect(await replicas[other]?.ended).toBe(0)
    const renewals = issued(replicas[leader] as Running)
    await eventually(() => expect(issued(replicas[leader] as Running)).toBeGreaterThan(renewals), 40_000)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
  })
  expect(released).toMatchObject({ refused: [], repeated: 0 })
}, 180_000)

test('when the API server is away for longer than the lease, the leader ends, and after a restart all goes on', async () => {
  const replica = await eventually(() => {
    const found = replicas.find((one) => one.process.exitCode === null && one.process.signalCode === null && leads(one))
    if (found === undefined) throw new Error('there is no leader')
    return found
  }, 40_000)
  await plane.stop('kube-apiserver')
  // A replica that may have been replaced must not write: the process exits and is restarted.
  expect(await replica.ended).toBe(1)
  await plane.start('kube-apiserver')
  const restarted = startReplica(ports[replicas.indexOf(replica)] ?? 0)
  replicas.push(restarted)
  await isReady(restarted)
  await client.apply(types.MCPExternalAuthConfig, config('after-the-outage'))
  await eventually(async () => {
    const { status } = await client.get(types.MCPExternalAuthConfig, 'default', 'after-the-outage')
    expect(status).toHaveProperty('configHash')
  }, 40_000)
}, 120_000)
