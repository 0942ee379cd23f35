import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Secret } from '../core/index.ts'
import { KubeError } from './kube-error.ts'

/** A PEM or token: a value, or a file that may change (projected tokens). */
export type Material = { readonly value: Secret } | { readonly file: string }

/** Address and credentials of the API server. */
export interface KubeSettings {
  /** `https://host[:port]`, without a path. */
  readonly server: string
  readonly ca: Material | undefined
  readonly token: Material | undefined
  readonly clientCert: Material | undefined
  readonly clientKey: Material | undefined
  readonly serverName: string | undefined
  readonly insecureSkipVerify: boolean
  /** Default namespace. */
  readonly namespace: string
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The settings of a pod: host and port of the environment, mounted token and CA. Undefined outside of a cluster. */
export function inClusterSettings(
  env: Readonly<Record<string, string | undefined>>,
  directory: string = SERVICE_ACCOUNT,
): KubeSettings | undefined {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (host === undefined || host === '' || port === undefined || port === '') return undefined
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: { file: `${directory}/ca.crt` },
    token: { file: `${directory}/token` },
    clientCert: undefined,
    clientKey: undefined,
    serverName: undefined,
    insecureSkipVerify: false,
    namespace: namespaceIn(directory),
  }
}

function namespaceIn(directory: string): string {
  try {
    return readFileSync(`${directory}/namespace`, 'utf8').trim() || 'default'
  } catch {
    return 'default'
  }
}

type Entry = Readonly<Record<string, unknown>>

const entryNamed = (list: unknown, name: unknown, member: string): Entry | undefined => {
  const found = Array.isArray(list) ? (list as Entry[]).find((entry) => entry['name'] === name) : undefined
  return found?.[member] as Entry | undefined
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/**
 * The settings of a kubeconfig's current or named context. Supports tokens, token files and client certificates, but
 * no plugins (`exec`, `auth-provider`). `parsed` is the YAML document. Throws `KubeError` (status 0, reason
 * `kubeconfig`).
 */
export function readKubeconfig(parsed: unknown, path: string, context?: string): KubeSettings {
  const config = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Entry
  const unusable = (message: string): KubeError => new KubeError(0, 'kubeconfig', { message: `${path}: ${message}` })
  const name = context ?? textOf(config['current-context'])
  const chosen = entryNamed(config['contexts'], name, 'context')
  if (chosen === undefined) throw unusable(name === undefined ? 'no current-context' : `no context "${name}"`)
  const cluster = entryNamed(config['clusters'], chosen['cluster'], 'cluster')
  const user = entryNamed(config['users'], chosen['user'], 'user') ?? {}
  const server = textOf(cluster?.['server'])
  if (cluster === undefined || server === undefined || !URL.canParse(server)) throw unusable('no usable server')
  if ('exec' in user || 'auth-provider' in user)
    throw unusable('credentials from a plugin are not supported; use a token, a token file or a client certificate')
  const from = (entry: Entry, data: string, file: string): Material | undefined => {
    const encoded = textOf(entry[data])
    if (encoded !== undefined) return { value: new Secret(Buffer.from(encoded, 'base64').toString('utf8')) }
    const named = textOf(entry[file])
    return named === undefined ? undefined : { file: resolve(dirname(path), named) }
  }
  const token = textOf(user['token'])
  const tokenFile = textOf(user['tokenFile'])
  return {
    server: new URL(server).origin,
    ca: from(cluster, 'certificate-authority-data', 'certificate-authority'),
    token:
      token !== undefined
        ? { value: new Secret(token) }
        : tokenFile === undefined
          ? undefined
          : { file: resolve(dirname(path), tokenFile) },
    clientCert: from(user, 'client-certificate-data', 'client-certificate'),
    clientKey: from(user, 'client-key-data', 'client-key'),
    serverName: textOf(cluster['tls-server-name']),
    insecureSkipVerify: cluster['insecure-skip-tls-verify'] === true,
    namespace: textOf(chosen['namespace']) ?? 'default',
  }
}
