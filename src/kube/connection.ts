import { type Log, Secret } from '../core/index.ts'
import { openWatchedFile } from '../files/index.ts'
import { type ApiClient, type ApiClientOptions, createApiClient } from '../net/index.ts'
import { createKubeClient, type KubeClient } from './client.ts'
import { KubeError } from './kube-error.ts'
import type { KubeSettings, Material } from './settings.ts'

export interface KubeConnection {
  readonly client: KubeClient
  close(): Promise<void>
}

export interface KubeConnectionOptions {
  readonly settings: KubeSettings
  readonly fieldManager: string
  readonly userAgent: string
  readonly log: Log
}

const MAX_FILE_BYTES = 1024 * 1024
/** The kubelet renews a projected token long before its end; a file that was swapped is noticed by its directory at once. */
const POLL_MS = 30_000

/** A client for the API server of `settings`; tokens, CA and client certificates in files are followed when they change. */
export function openKubeConnection({ settings, fieldManager, userAgent, log }: KubeConnectionOptions): KubeConnection {
  const closers: (() => void)[] = []
  const current = (material: Material | undefined): (() => string | undefined) => {
    if (material === undefined) return () => undefined
    if ('value' in material) return () => material.value.reveal()
    const file = openWatchedFile(material.file, {
      maxBytes: MAX_FILE_BYTES,
      pollMs: POLL_MS,
      onProblem: (problem) => log.warn({ file: material.file, problem }, 'a file for the API server cannot be read'),
    })
    closers.push(() => file.close())
    return () => file.read()?.toString('utf8')
  }
  const token = current(settings.token)
  const ca = current(settings.ca)
  const cert = current(settings.clientCert)
  const key = current(settings.clientKey)

  let api: ApiClient | undefined
  let madeFrom = ''
  let isClosed = false
  /** The client for the files as they are now; connections of an older one end by themselves. */
  const currentApi = (): ApiClient => {
    if (isClosed) throw new KubeError(0, 'closed')
    const [caText, certText, keyText] = [ca(), cert(), key()]
    // Fail closed: the system roots must not stand in for a CA file that is not there.
    if (settings.ca !== undefined && caText === undefined) throw new KubeError(0, 'no CA certificate')
    const from = JSON.stringify([caText, certText, keyText])
    if (api !== undefined && from === madeFrom) return api
    api?.retire()
    madeFrom = from
    const options: ApiClientOptions = {
      origin: settings.server,
      ca: buffer(caText),
      cert: buffer(certText),
      key: buffer(keyText),
      serverName: settings.serverName,
      insecureSkipVerify: settings.insecureSkipVerify,
    }
    return (api = createApiClient(options))
  }
  const delegating: ApiClient = {
    request: async (request, bounds) => currentApi().request(request, bounds),
    stream: async (request, bounds) => currentApi().stream(request, bounds),
    retire: () => api?.retire(),
    close: async () => {
      await api?.close()
    },
  }
  const client = createKubeClient({
    api: delegating,
    token: () => {
      const text = token()?.trim()
      return text === undefined || text === '' ? undefined : new Secret(text)
    },
    fieldManager,
    userAgent,
  })
  return {
    client,
    async close() {
      isClosed = true
      for (const close of closers) close()
      await delegating.close()
    },
  }
}

const buffer = (text: string | undefined): Buffer | undefined => (text === undefined ? undefined : Buffer.from(text))
