import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { freePort } from '../../../lab/index.ts'
import type { KubeClient, KubeConnection } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'
import type { Running } from '../../support/e2e/process.ts'
import { type ControlPlane, eventually, startControlPlane } from './control-plane.ts'
import { type Kubelet, openKubelet } from './kubelet.ts'
import { connect, root } from './operator-rig.ts'
import { type ServiceNetwork, startServiceNetwork } from './service-network.ts'

export const SYSTEM = 'extauth-system'

/** A process that runs the operator's pod, as a kubelet would. */
export interface OperatorPod {
  readonly running: Running
  /** Ends it, by default as a node does that loses power. */
  end(signal?: NodeJS.Signals): Promise<void>
}

/** An empty cluster, and what people install with. */
export interface Installation {
  readonly plane: ControlPlane
  readonly client: KubeClient
  /** Runs kubectl; its standard output. Throws with what it said when it fails. */
  kubectl(...args: readonly string[]): string
  /** Runs lines of a shell as they are documented, in the root of the project, without holding up what runs here. */
  shell(script: string, timeoutMs?: number): Promise<string>
  /**
   * Runs what the operator's Deployment wants run (a pod of it with this argument), until webhooks are answered: arguments,
   * mounts, user and account are the pod's.
   */
  runOperatorPod(argument?: string): Promise<OperatorPod>
}

const run = promisify(execFile)

/** An empty cluster before all tests of a file, whose API server reaches Services; and its end after them. */
export function useInstallation(): Installation {
  let plane: ControlPlane | undefined
  let network: ServiceNetwork | undefined
  let connection: KubeConnection | undefined
  const pods = new Set<OperatorPod>()
  const there = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the cluster is not there yet')
    return value
  }
  beforeAll(async () => {
    network = await startServiceNetwork()
    plane = await startControlPlane({ apiServerArguments: network.apiServerArguments })
    connection = connect(plane)
  }, 240_000)
  afterAll(async () => {
    for (const pod of pods) await pod.end()
    await connection?.close()
    await plane?.close()
    await network?.close()
  }, 60_000)
  const environment = () => ({ ...process.env, KUBECONFIG: there(plane).kubeconfigPath })

  const startPod = async (argument = 'operator'): Promise<OperatorPod> => {
    const { client } = there(connection)
    const pod = await eventually(async () => {
      const selection = { namespace: SYSTEM, labelSelector: 'app.kubernetes.io/component=operator' }
      const { items } = await client.list(CLUSTER_TYPES.Pod, selection)
      const found = items.find(
        ({ metadata, spec }) =>
          metadata.deletionTimestamp === undefined && argumentsOf(spec).some((one) => one === argument),
      )
      if (found === undefined) throw new Error('no pod yet')
      return found
    })
    const kubelet: Kubelet = await eventually(() => openKubelet(client, pod, 'operator'))
    const port = await freePort()
    const server = new URL(there(plane).server)
    // In a pod both ports are its own; here others may have them.
    const running = kubelet.start(['--admin', '127.0.0.1:0', '--webhook-address', `127.0.0.1:${port}`], {
      KUBERNETES_SERVICE_HOST: server.hostname,
      KUBERNETES_SERVICE_PORT: server.port,
    })
    const operator: OperatorPod = {
      running,
      async end(signal = 'SIGKILL') {
        pods.delete(operator)
        running.process.kill(signal)
        await running.ended
        there(network).lead(undefined)
        kubelet.close()
      },
    }
    pods.add(operator)
    const { admin } = await running.line('listening')
    await eventually(async () => {
      const answer = await fetch(`${String(admin)}/readiness`)
      expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
    }, 40_000)
    await eventually(() => expect(running.stderr()).toContain('"leadership acquired"'), 40_000)
    there(network).lead(port)
    return operator
  }

  return {
    get plane() {
      return there(plane)
    },
    get client() {
      return there(connection).client
    },
    kubectl: (...args) =>
      execFileSync('kubectl', args, {
        encoding: 'utf8',
        env: environment(),
        cwd: root,
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    async shell(script, timeoutMs = 60_000) {
      const options = { env: environment(), cwd: root, timeout: timeoutMs, maxBuffer: 16 * 1024 * 1024 }
      const { stdout, stderr } = await run('bash', ['-euo', 'pipefail', '-c', script], options)
      return stdout + stderr
    },
    runOperatorPod: startPod,
  }
}

const argumentsOf = (spec: unknown): readonly string[] =>
  (spec as { containers: { args?: string[] }[] }).containers[0]?.args ?? []

/** The lines of a shell under a heading (or a paragraph that begins so) of a page. Throws where there are none. */
export function documentedShell(page: string, beginning: string): string {
  const text = readFileSync(path.join(root, page), 'utf8')
  const at = text.indexOf(`\n${beginning}`)
  const script = at < 0 ? undefined : /```sh\n([\s\S]*?)```/.exec(text.slice(at))?.[1]
  if (script === undefined) throw new Error(`${page} has no commands under "${beginning}"`)
  return script
}

/** `Kind/namespace/name=generation` of everything that is installed and has one. */
export function generations({ kubectl }: Pick<Installation, 'kubectl'>): string[] {
  const kinds = [
    'deployments,networkpolicies,poddisruptionbudgets',
    'customresourcedefinitions,validatingwebhookconfigurations,mutatingwebhookconfigurations',
  ]
  const format = 'jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.generation}{"\\n"}{end}'
  return kinds.flatMap((kind) =>
    kubectl('get', kind, '-A', '-l', 'app.kubernetes.io/name=mcp-extauth', '-o', format).trim().split('\n'),
  )
}
