import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import path from 'node:path'
import { createInformer, type KubeClient, type KubeObject, type ResourceType } from '../../../src/kube/index.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { type AuditEvent, isWrite, requestsOf } from './audit-log.ts'
import { eventually, startControlPlane } from './control-plane.ts'
import { config, connect, installDefinitions, silent, types, workload } from './operator-rig.ts'

const USER = 'operator'
const TOKEN = 'token-of-the-operator'
const TICKS_PER_SECOND = 100
const AT_A_TIME = 50

/** An API server for thousands of objects, and an operator process with its own user in the audit log. */
export interface ScaleRig {
  readonly client: KubeClient
  /** Starts the operator; resolves when it leads and has read everything. */
  start(): Promise<void>
  /** How many requests the operator has made. */
  requests(): number
  /** Writes after the first `from` of them (default 0), leases left out: how often each was done. */
  writes(from?: number): Record<string, number>
  /** Sentence of what the time since `startedMs` took: CPU seconds, requests, memory, and how busy the machine is. */
  figures(startedMs: number, endMs: number): string
  /** SIGTERM; gives the exit code. */
  stop(): Promise<number | null>
  close(): Promise<void>
}

export async function openScaleRig(): Promise<ScaleRig> {
  const plane = await startControlPlane({
    controllers: false,
    users: `${TOKEN},${USER},${USER},system:masters\n`,
    // Each Service has an address.
    apiServerArguments: ['--service-cluster-ip-range', '10.0.0.0/16'],
  })
  const connection = connect(plane)
  await installDefinitions(connection.client)
  let operator: Running | undefined
  let before = { server: 0, store: 0 }
  const pidOf = (): number => operator?.process.pid ?? 0

  return {
    client: connection.client,
    async start() {
      before = { server: cpuSeconds(plane.pid('kube-apiserver')), store: cpuSeconds(plane.pid('etcd')) }
      const file = path.join(plane.directory, 'kubeconfig-operator')
      writeFileSync(file, readFileSync(plane.kubeconfigPath, 'utf8').replace(plane.token, TOKEN))
      const args = ['--kubeconfig', file, '--operator-namespace', 'default', '--webhook-address', 'off']
      operator = extauth(['operator', ...args, '--admin', '127.0.0.1:0'])
      const { admin } = await operator.line('listening')
      await eventually(async () => {
        const text = await (await fetch(`${String(admin)}/metrics`)).text()
        const { ok } = await fetch(`${String(admin)}/readiness`)
        if (!ok || !/^extauth_operator_leader 1$/m.test(text)) throw new Error('not ready yet')
      }, 60_000)
    },
    requests: () => requestsOf(plane, USER).length,
    writes: (from = 0) =>
      counted(
        requestsOf(plane, USER)
          .slice(from)
          .filter((one) => isWrite(one) && one.objectRef?.resource !== 'leases'),
      ),
    figures(startedMs, endMs) {
      const requests = Object.entries(counted(requestsOf(plane, USER).filter(isWrite)))
      const seconds = (value: number): string => value.toFixed(1)
      return [
        `${seconds((endMs - startedMs) / 1000)} s`,
        `CPU seconds: operator ${seconds(cpuSeconds(pidOf()))}, API server ${seconds(cpuSeconds(plane.pid('kube-apiserver')) - before.server)}, etcd ${seconds(cpuSeconds(plane.pid('etcd')) - before.store)}`,
        `written: ${requests.map(([what, times]) => `${times} ${what}`).join(', ')}`,
        `operator ${mebibytes(pidOf(), 'VmRSS')} MiB resident, ${mebibytes(pidOf(), 'VmHWM')} at most`,
        `load average ${seconds(loadavg()[0] ?? 0)} on ${availableParallelism()} cores`,
      ].join('\n  ')
    },
    stop() {
      operator?.process.kill('SIGTERM')
      return operator?.ended ?? Promise.resolve(null)
    },
    async close() {
      operator?.process.kill('SIGKILL')
      await connection.close()
      await plane.close()
    },
  }
}

/** `count` configs and as many workloads of a kind, each with a config of its own, as fast as the API server takes them. */
export async function createMany(
  client: KubeClient,
  count: number,
  kind: keyof typeof types,
  more = {},
): Promise<void> {
  const both = (index: number): [ResourceType, KubeObject][] => {
    const spec = { remoteUrl: 'https://api.example.com/mcp', externalAuthConfigRef: { name: `c-${index}` }, ...more }
    return [
      [types.MCPExternalAuthConfig, config(`c-${index}`)],
      [types[kind], workload(kind, `w-${index}`, spec)],
    ]
  }
  const all = Array.from({ length: count }, (_, index) => both(index)).flat()
  for (let at = 0; at < all.length; at += AT_A_TIME)
    await Promise.all(all.slice(at, at + AT_A_TIME).map(([type, object]) => client.create(type, object)))
}

/** Follows a kind until `count` objects are as wanted: milliseconds since the epoch of the last of them. */
export async function untilAll(
  client: KubeClient,
  type: ResourceType,
  count: number,
  isDone: (object: KubeObject) => boolean,
): Promise<number> {
  const done = new Set<string>()
  const { promise, resolve } = Promise.withResolvers<number>()
  const informer = createInformer({
    client,
    type,
    onChange: (key, _before, after) => {
      if (after !== undefined && isDone(after)) done.add(key)
      if (done.size === count) resolve(Date.now())
    },
    log: silent,
  })
  try {
    return await promise
  } finally {
    informer.close()
  }
}

/** A config that says all: its hash, and who refers to it. */
export const isComplete = ({ status, metadata }: KubeObject): boolean => {
  const { configHash, referencingWorkloads } = (status ?? {}) as {
    configHash?: string
    referencingWorkloads?: unknown[]
  }
  return configHash !== undefined && referencingWorkloads?.length === 1 && metadata.finalizers?.length === 1
}

/** How often each was done. */
function counted(requests: readonly AuditEvent[]): Record<string, number> {
  const found: Record<string, number> = {}
  for (const { verb, objectRef } of requests) {
    const resource = [objectRef?.resource, objectRef?.subresource].filter((part) => part !== undefined).join('/')
    const what = `${verb} ${resource}`
    found[what] = (found[what] ?? 0) + 1
  }
  return found
}

/** User and system time of a process, from its start. */
function cpuSeconds(pid: number | undefined): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

const mebibytes = (pid: number, field: string): number =>
  Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
