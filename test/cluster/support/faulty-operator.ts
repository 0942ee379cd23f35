import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { isNotFound, type KubeClient, type KubeObject, LEASES } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES, NAMES } from '../../../src/operator/index.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { TLS } from '../../support/tls.ts'
import { type ControlPlane, eventually } from './control-plane.ts'
import { type FaultProxy, type Seen, startFaultProxy } from './fault-proxy.ts'
import { config, namespaceObject, types, workload } from './operator-rig.ts'

/** A name that only the kubeconfig knows. */
const SERVER_NAME = 'idp.test'

/** The line of an operator's user in the file with tokens; it has a second token, as one that is rotated has. */
export const userLines = (user: string): string =>
  ['old', 'new'].map((which) => `token-${which}-${user},${user},${user},system:masters\n`).join('')

export interface AuditEvent {
  readonly user: { readonly username: string }
  readonly verb: string
  readonly requestReceivedTimestamp: string
  readonly objectRef?: { readonly resource: string; readonly subresource?: string; readonly name?: string }
  readonly responseStatus?: { readonly code?: number }
}

/** Requests of a user to the API server. */
export const auditOf = (plane: ControlPlane, user: string): AuditEvent[] =>
  readFileSync(plane.auditLogPath, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}') && line.includes(`"username":"${user}"`))
    .map((line) => JSON.parse(line) as AuditEvent)

/** A real `extauth operator` that reaches the API server only through a proxy that a test can break. */
export interface FaultyOperator {
  readonly user: string
  readonly namespace: string
  readonly proxy: FaultProxy
  /** The last round of `change` that `endure` has begun. */
  round: number
  running: Running
  /** Starts the process (again), as a kubelet does. */
  start(): void
  /** The kubeconfig's token file has another token from now on. */
  useToken(which: 'old' | 'new'): void
  readiness(): Promise<{ readonly status: number; readonly text: string }>
  /** Sum of a metric over its labels, as far as they contain `labels`. */
  metric(name: string, labels?: string): Promise<number>
  close(): Promise<void>
}

export async function startFaultyOperator(
  plane: ControlPlane,
  client: KubeClient,
  user: string,
  namespace = user,
): Promise<FaultyOperator> {
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(namespace))
  const proxy = await startFaultProxy(plane)
  const file = (name: string): string => path.join(plane.directory, `${user}-${name}`)
  const useToken = (which: 'old' | 'new'): void => {
    writeFileSync(file('token.next'), `token-${which}-${user}`)
    renameSync(file('token.next'), file('token'))
  }
  useToken('old')
  const cluster = {
    server: proxy.url,
    'tls-server-name': SERVER_NAME,
    'certificate-authority-data': TLS.ca.toString('base64'),
  }
  const kubeconfig = {
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { tokenFile: file('token') } }],
  }
  writeFileSync(file('kubeconfig'), JSON.stringify(kubeconfig))
  const args = ['operator', '--kubeconfig', file('kubeconfig'), '--namespace', namespace, '--admin', '127.0.0.1:0']
  const more = ['--operator-namespace', namespace, '--webhook-address', 'off', '--log-level', 'debug']
  const start = (): Running => extauth([...args, ...more])
  const operator: FaultyOperator = {
    user,
    namespace,
    proxy,
    round: 0,
    running: start(),
    start() {
      operator.running = start()
    },
    useToken,
    async readiness() {
      const { admin } = await operator.running.line('listening')
      const answer = await fetch(`${String(admin)}/readiness`, { headers: { connection: 'close' } })
      return { status: answer.status, text: await answer.text() }
    },
    async metric(name, labels = '') {
      const { admin } = await operator.running.line('listening')
      const answer = await fetch(`${String(admin)}/metrics`, { headers: { connection: 'close' } })
      const text = await answer.text()
      return text
        .split('\n')
        .filter((line) => line.startsWith(name) && line.includes(labels))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    },
    async close() {
      operator.running.process.kill('SIGKILL')
      await proxy.close()
    },
  }
  return operator
}

export const isReady = (operator: FaultyOperator, withinMs = 120_000): Promise<void> =>
  eventually(async () => expect(await operator.readiness()).toMatchObject({ status: 200 }), withinMs)

export const holder = async (client: KubeClient, namespace: string): Promise<string> =>
  ((await client.get(LEASES, namespace, NAMES.lease)).spec as { holderIdentity?: string }).holderIdentity ?? ''

const bearer = (name: string): object => ({
  type: 'bearerToken',
  bearerToken: { tokenSecretRef: { name, key: 'value' } },
})
const nameOf = (round: number): string => `made-${round}`
const EDITED = 'edited'

/**
 * The `round`th set of changes in a namespace (0: the first one), made past the operator: a config is created and one is
 * edited, an entry and a proxy refer to the new one, and the one that they referred to is deleted. Made again, it changes
 * nothing, so a busy machine may take several tries.
 */
export const change = (client: KubeClient, namespace: string, round: number): Promise<void> =>
  eventually(() => changeOnce(client, namespace, round), 40_000)

async function changeOnce(client: KubeClient, namespace: string, round: number): Promise<void> {
  const made = nameOf(round)
  await client.apply(types.MCPExternalAuthConfig, config(EDITED, namespace, bearer(`secret-${round}`)))
  await client.apply(types.MCPExternalAuthConfig, config(made, namespace, bearer(made)))
  const spec = { remoteUrl: 'https://api.example.com/mcp', externalAuthConfigRef: { name: made } }
  const issuer = 'https://idp.example.com'
  const oidcConfig = { type: 'inline', inline: { issuer, audience: 'mcp', jwksUrl: `${issuer}/jwks` } }
  const proxySpec = { ...spec, oidcConfig, resourceUrl: 'https://mcp.example.com/x' }
  await client.apply(types.MCPServerEntry, workload('MCPServerEntry', 'entry', spec, namespace))
  await client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'proxy', proxySpec, namespace))
  if (round > 0) await client.remove(types.MCPExternalAuthConfig, namespace, nameOf(round - 1))
}

interface ConfigStatus {
  readonly observedGeneration?: number
  readonly configHash?: string
  readonly referencingWorkloads?: readonly { readonly kind: string; readonly name: string }[]
}

/** Throws until everything that `change` has begun is done: statuses, references, the Deployment, and the finalizer released. */
export async function expectConverged(client: KubeClient, namespace: string, round: number): Promise<void> {
  const statusOf = async (name: string): Promise<{ object: KubeObject; status: ConfigStatus }> => {
    const object = await client.get(types.MCPExternalAuthConfig, namespace, name)
    return { object, status: object.status ?? {} }
  }
  const edited = await statusOf(EDITED)
  expect(edited.status.observedGeneration).toBe(edited.object.metadata.generation)
  const { status } = await statusOf(nameOf(round))
  expect(status.referencingWorkloads?.map(({ kind, name }) => `${kind}/${name}`)).toEqual([
    'MCPRemoteProxy/proxy',
    'MCPServerEntry/entry',
  ])
  const proxy = await client.get(types.MCPRemoteProxy, namespace, 'proxy')
  expect(proxy.status).toMatchObject({
    observedGeneration: proxy.metadata.generation,
    externalAuthConfigHash: status.configHash,
  })
  await client.get(CLUSTER_TYPES.Deployment, namespace, 'proxy-extauth')
  if (round === 0) return
  const before = await client.get(types.MCPExternalAuthConfig, namespace, nameOf(round - 1)).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
    return undefined
  })
  expect(before?.metadata.finalizers).toBeUndefined()
}

/** How often the operator's user has written the status of the edited config with success. */
export const statusWrites = (plane: ControlPlane, { user }: FaultyOperator): number =>
  auditOf(plane, user).filter(
    ({ verb, objectRef, responseStatus }) =>
      verb === 'patch' &&
      objectRef?.subresource === 'status' &&
      objectRef.name === EDITED &&
      responseStatus?.code === 200,
  ).length

/** How often each kind of request came, and each object of it. */
export function counted(requests: readonly Seen[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { verb, resource, name } of requests) {
    const key = [verb, resource, name].filter((part) => part !== '').join(' ')
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}
