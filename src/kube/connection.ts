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
/**
 * The kubelet renews a projected token long before its expiry. A replaced file is detected at once by its directory.
 */
const POLL_MS = 30_000

/** Opens a client for the API server of `settings`; follows changes of token, CA and client certificate files. */
export function openKubeConnection({ settings, fieldManager, userAgent, log }: KubeConnectionOptions): KubeConnection {
  const closers: (() => void)[] = []
  const current = (material: Material | undefined): (() => string | undefined) => {
    if (material === undefined) return () => undefined
    if ('value' in material) return () => material.value.reveal()
    const file = openWatchedFile(material.file, {
      maxBytes: MAX_FILE_BYTES,
      pollMs: POLL_MS,
      onProblem: (problem) => log.warn({ file: material.file, problem }, 'file for the API server is unreadable'),
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
  /** The client for the current files. Connections of older ones end on their own. */
  const currentApi = (): ApiClient => {
    if (isClosed) throw new KubeError(0, 'closed')
    const [caText, certText, keyText] = [ca(), cert(), key()]
    // Fail closed: the system's CA certificates must not replace a missing CA file.
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
