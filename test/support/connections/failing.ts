import { createElicitation } from '../../../src/elicitation/index.ts'
import type { ConnectionService } from '../../../src/connections/index.ts'
import { type AuthenticatedCaller, type ClaimValue, Failure } from '../../../src/core/index.ts'
import { createMemoryStore, type Store, StoreError, type StoreListener } from '../../../src/storage/index.ts'
import { createCaller, createManualClock, createRecordingLog } from '../ports.ts'
import { createRoute, headerCredential } from '../proxy/harness.ts'
import type { Sockets } from '../sockets.ts'
import { SUBJECT } from '../upstreams/idp.ts'
import { type ConnectionRig, type RigOptions, startRig } from './rig.ts'

/** The store of a test: which keys are in it, and operations that fail. */
export interface WatchedStore {
  readonly store: (memory: Store) => Store
  /** Kinds of the keys that are in the store, with their number: `ticket`, `prompt`, `login`, `session`, … */
  kinds(): Promise<Readonly<Record<string, number>>>
  /** Operations fail from this one on, counted from the next as 1, so many of them. */
  fail(from?: number, count?: number): void
  /** Operations work again, and replicas learn that they were cut off. */
  recover(): void
  /** Operations that failed, with the kind of their key. */
  readonly failed: readonly string[]
}

/** Operations that read or write a key; the other ones belong to no request. */
const KEYED: ReadonlySet<PropertyKey> = new Set(['get', 'put', 'putIfAbsent', 'take', 'compareAndSet', 'delete'])

export function watchStore(): WatchedStore {
  const keys = new Set<string>()
  let memory = createMemoryStore({ clock: createManualClock(), log: createRecordingLog() }) as Store
  const listeners: StoreListener[] = []
  const failed: string[] = []
  let failing: { readonly from: number; readonly end: number; operations: number } | undefined
  return {
    failed,
    store(made) {
      memory = made
      return new Proxy(made, {
        get(target, name, receiver) {
          const value: unknown = Reflect.get(target, name, receiver)
          if (name === 'subscribe')
            return (channel: string, listener: StoreListener) => {
              listeners.push(listener)
              return target.subscribe(channel, listener)
            }
          if (typeof value !== 'function' || !KEYED.has(name)) return value
          return (...args: unknown[]) => {
            const named = args.filter((arg) => typeof arg === 'string' && arg.includes(':')) as string[]
            for (const key of named) keys.add(key)
            if (failing !== undefined) {
              failing.operations++
              if (failing.operations >= failing.from && failing.operations < failing.end) {
                failed.push(`${String(name)} ${named[0]?.split(':')[0]}`)
                return Promise.reject(new StoreError('unavailable'))
              }
            }
            return Reflect.apply(value, target, args) as unknown
          }
        },
      })
    },
    async kinds() {
      const found: Record<string, number> = {}
      for (const key of keys) {
        if ((await memory.get(key)) === undefined) continue
        const [kind = ''] = key.split(':')
        // Ids of ended sessions are no records of a connection.
        if (kind !== 'ended') found[kind] = (found[kind] ?? 0) + 1
      }
      return found
    },
    fail(from = 1, count = Infinity) {
      failing = { from, end: from + count, operations: 0 }
    },
    recover() {
      if (failing === undefined) return
      failing = undefined
      for (const listener of listeners) listener.onGap()
    },
  }
}

/** What the client of a caller gets. */
export interface Answered {
  readonly status: number
  readonly retryAfter: string | null
  /** The link in the result. */
  readonly link: string | undefined
  /** The reason of an error; `connected` for a response of the backend with the credential. */
  readonly outcome: string
}

export interface FailingWorld extends ConnectionRig {
  readonly kept: WatchedStore
  /** The person whose account is missing. */
  readonly caller: AuthenticatedCaller
  /** Lets the listener serve a different replica. */
  serveReplica(one: ConnectionService): void
  /** A call of `tools/call` by a client that shows text only. */
  call(caller?: AuthenticatedCaller): Promise<Answered>
}

export interface FailingOptions extends Omit<RigOptions, 'store'> {
  /** The connection of the route. Default `github`. */
  readonly provider?: string
  /** More claims of the caller. */
  readonly claims?: Readonly<Record<string, ClaimValue>>
}

/** The proxy with a route that needs the connection `provider`. */
export async function startFailing(sockets: Sockets, options: FailingOptions = {}): Promise<FailingWorld> {
  const { provider = 'github', claims = {} } = options
  const kept = watchStore()
  const rig = await startRig(sockets, { ...options, store: kept.store })
  const backend = await sockets.http((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ backend: request.headers.authorization }))
  })
  const { clock, log, metrics } = rig
  const own = createCaller({ issuer: rig.people.url, subject: SUBJECT, claims: { sub: SUBJECT, ...claims } })
  let caller = own
  const route = createRoute(sockets, backend, {
    path: '/code',
    isProtected: true,
    ownedHeaders: ['authorization'],
    caller: () => caller,
    elicitation: createElicitation({
      route: 'code',
      links: rig.links,
      providers: [provider],
      listedWith: provider,
      clock,
      log,
      metrics,
      version: '1',
    }),
    credential: async () => {
      const { token } = await rig.main.accounts.current(caller, provider, 'access_token')
      return headerCredential('authorization', `Bearer ${token.reveal()}`)
    },
  })
  rig.serve(rig.main, [route])
  return {
    ...rig,
    kept,
    caller: own,
    serveReplica: (one) => rig.serve(one, [route]),
    async call(by = own) {
      caller = by
      const response = await fetch(`${rig.url}/code`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
      })
      const text = await response.text()
      const body = JSON.parse(text) as {
        backend?: string
        result?: { isError?: boolean }
        error?: { data?: { reason?: string } }
      }
      return {
        status: response.status,
        retryAfter: response.headers.get('retry-after'),
        link: /http:[^\s"]+\/connect\/[\w-]{32}/.exec(text)?.[0],
        outcome:
          body.backend === undefined
            ? (body.error?.data?.reason ?? (body.result?.isError === true ? 'asked' : text))
            : 'connected',
      }
    },
  }
}

/** The link of a first call. Throws for a client that is not asked. */
export async function firstLink(world: FailingWorld): Promise<string> {
  const { link, outcome } = await world.call()
  if (link === undefined) throw new Failure('internal_error', { detail: `no link but ${outcome}` })
  return link
}
