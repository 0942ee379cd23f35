import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Agent, request } from 'undici'
import { freePort } from '../../../lab/free-port.ts'
import { CONTROL_PLANE, findProgram } from './binary.ts'

type Part = 'etcd' | 'kube-apiserver' | 'kube-controller-manager'

export interface ControlPlane {
  /** `https://127.0.0.1:port`. */
  readonly server: string
  /** Of a user in `system:masters`. */
  readonly token: string
  readonly caPath: string
  readonly kubeconfigPath: string
  readonly directory: string
  readonly auditLogPath: string
  /** Process of a part that runs. */
  pid(part: Part): number | undefined
  /** Ends a part, by default as a machine does that loses power. */
  stop(part: Part, signal?: NodeJS.Signals): Promise<void>
  /** Starts a part again with the options that it had, and waits until it answers. */
  start(part: Part): Promise<void>
  close(): Promise<void>
}

export interface ControlPlaneOptions {
  readonly controllers?: boolean
  readonly apiServerArguments?: readonly string[]
  /** Issuer of service account tokens. Default: that of kubeadm. */
  readonly issuer?: string
  /** More lines of the file with tokens: `token,name,uid,groups`. */
  readonly users?: string
}

const CONTROLLERS = [
  'deployment-controller',
  'replicaset-controller',
  'namespace-controller',
  'garbage-collector-controller',
  'disruption-controller',
  'endpoints-controller',
  'endpointslice-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'root-ca-certificate-publisher-controller',
  'clusterrole-aggregation-controller',
]

/** A real API server with etcd and controllers on free loopback ports; nothing runs pods. Up in about ten seconds. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const binary = findProgram(CONTROL_PLANE)
  if (binary === undefined) throw new Error('no control plane')
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-cluster-'))
  const file = (name: string): string => path.join(directory, name)
  const [etcdPort, peerPort, apiPort, managerPort] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const etcd = `http://127.0.0.1:${etcdPort}`
  const peer = `http://127.0.0.1:${peerPort}`
  const server = `https://127.0.0.1:${apiPort}`
  const token = randomBytes(16).toString('hex')
  mkdirSync(file('certs'))
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(file('sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }))
  writeFileSync(file('sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(file('tokens.csv'), `${token},admin,admin,system:masters\n${options.users ?? ''}`)
  writeFileSync(
    file('audit.yaml'),
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n',
  )
  const args: Record<Part, readonly string[]> = {
    etcd: [
      '--data-dir',
      file('etcd'),
      '--unsafe-no-fsync',
      '--log-level',
      'error',
      '--listen-client-urls',
      etcd,
      '--advertise-client-urls',
      etcd,
      '--listen-peer-urls',
      peer,
      '--initial-advertise-peer-urls',
      peer,
      '--initial-cluster',
      `default=${peer}`,
    ],
    'kube-apiserver': [
      '--etcd-servers',
      etcd,
      '--bind-address',
      '127.0.0.1',
      '--secure-port',
      String(apiPort),
      '--advertise-address',
      '127.0.0.1',
      '--endpoint-reconciler-type',
      'none',
      '--cert-dir',
      file('certs'),
      '--token-auth-file',
      file('tokens.csv'),
      '--authorization-mode',
      'RBAC',
      '--allow-privileged=true',
      '--service-cluster-ip-range',
      '10.0.0.0/24',
      '--request-timeout',
      '1m',
      '--service-account-issuer',
      options.issuer ?? 'https://kubernetes.default.svc.cluster.local',
      '--service-account-key-file',
      file('sa.pub'),
      '--service-account-signing-key-file',
      file('sa.key'),
      '--audit-policy-file',
      file('audit.yaml'),
      '--audit-log-path',
      file('audit.log'),
      ...(options.apiServerArguments ?? []),
    ],
    'kube-controller-manager': [
      '--kubeconfig',
      file('kubeconfig'),
      '--leader-elect=false',
      '--bind-address',
      '127.0.0.1',
      '--secure-port',
      String(managerPort),
      '--cert-dir',
      file('certs-cm'),
      '--root-ca-file',
      file('certs/apiserver.crt'),
      '--service-account-private-key-file',
      file('sa.key'),
      '--use-service-account-credentials=false',
      '--controllers',
      CONTROLLERS.join(','),
    ],
  }
  const running = new Map<Part, ChildProcess>()
  const stop = async (part: Part, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const child = running.get(part)
    running.delete(part)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await gone
  }
  const spawnPart = (part: Part): void => {
    const log = openSync(file(`${part}.log`), 'a')
    running.set(part, spawn(binary, [part, ...args[part]], { stdio: ['ignore', log, log] }))
  }
  const answers = async (probe: string): Promise<void> => {
    await eventually(async () => {
      // Read each time: the first time it may be written only in part.
      const dispatcher = new Agent({ connect: { ca: readFileSync(file('certs/apiserver.crt')) } })
      try {
        const answer = await request(`${server}${probe}`, { dispatcher, headers: { authorization: `Bearer ${token}` } })
        await answer.body.dump()
        if (answer.statusCode !== 200) throw new Error(`${probe} answers ${answer.statusCode}`)
      } finally {
        await dispatcher.destroy()
      }
    }, 180_000)
  }
  const start = async (part: Part): Promise<void> => {
    spawnPart(part)
    if (part === 'kube-apiserver') await answers('/readyz')
  }
  const close = async (): Promise<void> => {
    for (const part of ['kube-controller-manager', 'kube-apiserver', 'etcd'] as const) await stop(part)
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    spawnPart('etcd')
    await start('kube-apiserver')
    const ca = readFileSync(file('certs/apiserver.crt'))
    writeFileSync(file('kubeconfig'), kubeconfig(server, ca, token))
    if (options.controllers !== false) {
      spawnPart('kube-controller-manager')
      await answers('/api/v1/namespaces/default/serviceaccounts/default')
    }
  } catch (error) {
    await close()
    throw error
  }
  return {
    server,
    token,
    caPath: file('certs/apiserver.crt'),
    kubeconfigPath: file('kubeconfig'),
    directory,
    auditLogPath: file('audit.log'),
    pid: (part) => running.get(part)?.pid,
    stop,
    start,
    close,
  }
}

const kubeconfig = (server: string, ca: Buffer, token: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': ca.toString('base64') } }],
    users: [{ name: 'admin', user: { token } }],
  })

/** Tries until it works; after `withinMs` the last error is thrown. */
export async function eventually<T>(attempt: () => T | Promise<T>, withinMs = 30_000): Promise<T> {
  const endMs = Date.now() + withinMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (Date.now() > endMs) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
