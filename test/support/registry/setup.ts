import { request as httpRequest } from 'node:http'
import type { Log, Metrics } from '../../../src/core/index.ts'
import {
  startRegistry,
  type AccessPolicy,
  type RegistryOptions,
  type RegistryServer,
  type RegistryState,
} from '../../../src/registry/index.ts'
import { validateItems } from '../../../src/registry/parse.ts'
import { OFFICIAL_META } from '../../../src/registry/server-json.ts'
import { buildSnapshot, type Snapshot } from '../../../src/registry/listing/snapshot.ts'

export const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const nothing = { add: () => {}, set: () => {}, observe: () => {} }
export const NO_METRICS: Metrics = {
  counter: () => ({ with: () => nothing }),
  gauge: () => ({ with: () => nothing }),
  histogram: () => ({ with: () => nothing }),
}

/** A log that keeps its lines. */
export function recordingLog(): Log & { lines: string[] } {
  const lines: string[] = []
  const add = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  return { lines, debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') }
}

export interface Official {
  status?: string
  publishedAt?: string
  updatedAt?: string
  isLatest?: boolean
}

export const T0 = Date.parse('2026-01-01T00:00:00Z')

/** An entry of the API. */
export const entry = (name: string, version: string, official?: Official): object => ({
  server: { name, version, description: `What ${name} does` },
  ...(official === undefined ? {} : { _meta: { [OFFICIAL_META]: official } }),
})

export const snapshotOf = async (items: readonly unknown[]): Promise<Snapshot> =>
  buildSnapshot(await validateItems(items, 'test', T0))

export const stateOf = (
  snapshot: Snapshot | undefined,
  problem?: RegistryState['problem'],
): { state: () => RegistryState } => ({
  state: () => ({ snapshot, problem, loadedAtMs: T0 }),
})

export async function start(
  items: readonly unknown[],
  options: Partial<RegistryOptions> & { access?: AccessPolicy } = {},
): Promise<RegistryServer> {
  return startRegistry({
    address: '127.0.0.1:0',
    registries: new Map([['default', stateOf(await snapshotOf(items))]]),
    access: { mode: 'anonymous' },
    documentsFor: (url) => new Map([['/.well-known/oauth-protected-resource', { resource: url }]]),
    version: '1.2.3',
    log: SILENT,
    metrics: NO_METRICS,
    ...options,
  })
}

export interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly json: unknown
}

/** A request whose target is sent as it is written: `fetch` would tidy it up. */
export function get(
  server: { url: string },
  target: string,
  options: { method?: string; headers?: Record<string, string | string[]> } = {},
): Promise<Got> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: hostname, port, path: target, method: options.method ?? 'GET', headers: options.headers, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          let json: unknown
          try {
            json = JSON.parse(text)
          } catch {
            json = undefined
          }
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json })
        })
      },
    )
    request.on('error', reject)
    request.end()
  })
}

export interface List {
  readonly servers: readonly {
    readonly server: { readonly name: string; readonly version: string }
    readonly _meta: Readonly<Record<string, Official>>
  }[]
  readonly metadata: { readonly count: number; readonly nextCursor?: string }
}

export const listOf = (got: Got): List => got.json as List

export const idsOf = (got: Got): string[] => listOf(got).servers.map(({ server }) => `${server.name} ${server.version}`)

export const SERVERS = '/registry/default/v0.1/servers'
