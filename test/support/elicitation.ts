import { startLabBackend } from '../../lab/index.ts'
import {
  type Caller,
  type ConnectLinks,
  type ConnectionNeed,
  type Credential,
  Failure,
  Secret,
} from '../../src/core/index.ts'
import { createElicitation } from '../../src/elicitation/index.ts'
import { callerWith } from './authorize/ruled.ts'
import { createRecordingLog, createRecordingMetrics, type RecordingLog, type RecordingMetrics } from './ports.ts'
import { createRoute, headerCredential, runtimeOf, startProxy, type Started } from './proxy/harness.ts'
import type { Sockets } from './sockets.ts'

/** Links and connections of a test; `connect` stands for the person who opens the link. */
export interface TestLinks extends ConnectLinks {
  readonly made: { readonly caller: Caller; readonly need: ConnectionNeed }[]
  connect(): void
  disconnect(): void
  readonly listeners: number
}

export function createTestLinks(listing?: Credential): TestLinks {
  let isConnected = false
  const listeners = new Set<(id: string) => void>()
  const made: TestLinks['made'] = []
  return {
    made,
    get listeners() {
      return listeners.size
    },
    connect() {
      isConnected = true
      for (const listener of listeners) listener('prompt-1')
    },
    disconnect() {
      isConnected = false
    },
    link: (caller, _route, need) => {
      made.push({ caller, need })
      return Promise.resolve({
        url: 'https://mcp.example/connect/ticket-1',
        expiresAtMs: Date.now() + 630_000,
        id: 'prompt-1',
      })
    },
    label: () => 'GitHub',
    isConnected: () => Promise.resolve(isConnected),
    onConnected: (_caller, _provider, listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    listing: () => listing,
    seal: (purpose, text) => Buffer.from(JSON.stringify([purpose, text])).toString('base64url'),
    open: (purpose, sealed) => {
      try {
        const [name, text] = JSON.parse(Buffer.from(sealed, 'base64url').toString()) as [string, string]
        return Promise.resolve(name === purpose ? text : undefined)
      } catch {
        return Promise.resolve(undefined)
      }
    },
  }
}

export interface Unconnected extends Started {
  readonly links: TestLinks
  readonly prompts: RecordingMetrics
  readonly promptLog: RecordingLog
  readonly backend: Awaited<ReturnType<typeof startLabBackend>>
  /** Why the caller is not connected, and who calls. */
  readonly state: { problem: ConnectionNeed['problem']; subject: string }
}

/** The real proxy before the lab's MCP server, which requires a credential for everything. */
export async function startUnconnected(sockets: Sockets, more: { listing?: Credential } = {}): Promise<Unconnected> {
  const backend = sockets.closing(
    await startLabBackend({
      port: 0,
      clock: Date,
      mounts: { '/mcp': { kind: 'header', name: 'x-api-key', value: new Secret('key-of-alice') } },
    }),
  )
  const links = createTestLinks(more.listing)
  const prompts = createRecordingMetrics()
  const promptLog = createRecordingLog()
  const state = { problem: 'missing' as ConnectionNeed['problem'], subject: 'alice' }
  const elicitation = createElicitation({
    route: 'r',
    links,
    providers: ['github'],
    listedWith: 'github',
    clock: Date,
    log: promptLog,
    metrics: prompts,
    version: '1.2.3',
  })
  const route = createRoute(sockets, backend.url, {
    targetPath: '/mcp',
    isProtected: true,
    ownedHeaders: ['x-api-key'],
    caller: () => callerWith({}, state.subject),
    elicitation,
    credential: async () => {
      if (await links.isConnected({ kind: 'anonymous' }, 'github')) return headerCredential('x-api-key', 'key-of-alice')
      throw new Failure('not_connected', { connection: { provider: 'github', problem: state.problem } })
    },
  })
  const proxy = await startProxy(sockets, runtimeOf([route]))
  return { ...proxy, links, prompts, promptLog, backend, state }
}
