import type { ConnectionFilter, ConnectionList, ListFilter } from '../connections/index.ts'
import { asFailure } from '../core/index.ts'
import type { CacheListing, PurgeFilter } from '../cache/index.ts'
import { withMaskedQueries } from '../inspect/index.ts'
import type { OpsHandler, Readiness } from '../ops/index.ts'

/** Outcome of a reload: the new configuration is active, or the old one stays active because of `problems`. */
export type ReloadResult = { readonly ok: true } | { readonly ok: false; readonly problems: readonly string[] }

type Answer<T> = T | Promise<T>

/** Outcome of a purge. */
export interface Purged {
  /** Number of matching credentials in this process. */
  readonly purged: number
  /** Whether the shared store has the purge; absent without a shared store. */
  readonly isNotified?: boolean
  /** Number of processes that received the message, this one included; the others read it from the store within a second. */
  readonly receivers?: number | undefined
}

/** The operations behind the admin listener: those of this process, or of all of its workers together. */
export interface ProxyControls {
  /** The effective configuration, secrets by reference. */
  config(): Answer<object>
  readiness(): Answer<Readiness>
  /** Prometheus text exposition format. */
  metrics(): Promise<string>
  cache(): Answer<CacheListing>
  purge(filter: PurgeFilter): Answer<Purged>
  /** Ends connections of one caller; returns their number. Throws `store_unavailable`. */
  disconnect(filter: ConnectionFilter): Answer<number>
  /** Throws `store_unavailable`. */
  connections(filter: ListFilter): Answer<ConnectionList>
  /** Newest first. */
  decisions(): Answer<readonly object[]>
  reload(): Promise<ReloadResult>
}

const FILTERS = ['subject', 'issuer', 'config', 'role'] as const

/** The authenticated endpoints of the admin listener (decisions §7): effective config, cache, decisions, reload. */
export function adminEndpoints(controls: ProxyControls): Readonly<Record<string, OpsHandler>> {
  return {
    'GET /config': async () => ({ status: 200, json: withMaskedQueries(await controls.config()) }),
    'GET /cache': async () => ({ status: 200, json: await controls.cache() }),
    'DELETE /cache': async ({ query }) => {
      const problem = unusable(query, FILTERS)
      if (problem !== undefined) return refuse(problem)
      const filter: PurgeFilter = Object.fromEntries(
        FILTERS.flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : [])),
      )
      const { purged, isNotified, receivers } = await controls.purge(filter)
      if (isNotified === undefined) return { status: 200, json: { purged } }
      return isNotified
        ? { status: 200, json: { purged, ...notifiedIs(true), receivers } }
        : { status: 202, json: { purged, ...notifiedIs(false), detail: PURGE_PENDING } }
    },
    'GET /connections': async ({ query }) => {
      const problem = unusable(query, ['provider', 'issuer', 'subject', 'after'])
      if (problem !== undefined) return refuse(problem)
      const [issuer, subject] = [query.get('issuer'), query.get('subject')]
      if ((issuer === null) !== (subject === null)) return refuse('issuer and subject must be given together')
      const caller = issuer === null || subject === null ? undefined : { issuer, subject }
      const [provider, after] = [query.get('provider') ?? undefined, query.get('after') ?? undefined]
      return orFailure(() => controls.connections({ provider, caller, after }))
    },
    'DELETE /connections': async ({ query }) => {
      const problem = unusable(query, ['issuer', 'subject', 'provider'])
      if (problem !== undefined) return refuse(problem)
      const [issuer, subject, provider] = [query.get('issuer'), query.get('subject'), query.get('provider')]
      // Nothing is ended for all callers at once.
      if (issuer === null || subject === null) return refuse('issuer and subject are required')
      return orFailure(async () => ({
        disconnected: await controls.disconnect({ issuer, subject, provider: provider ?? undefined }),
      }))
    },
    'GET /decisions': async () => ({ status: 200, json: { decisions: await controls.decisions() } }),
    'POST /reload': async () => {
      const result = await controls.reload()
      return result.ok
        ? { status: 200, json: { reloaded: true } }
        : { status: 422, json: { reloaded: false, problems: result.problems } }
    },
  }
}

const PURGE_PENDING =
  'shared store unavailable: the other replicas receive the purge when it recovers, if this replica still runs'

/** `told` is the deprecated name, until the next minor version. */
const notifiedIs = (isNotified: boolean) => ({ notified: isNotified, told: isNotified })

/** A misspelled or empty filter must not select everything. */
function unusable(query: URLSearchParams, known: readonly string[]): string | undefined {
  const unknown = [...query.keys()].find((name) => !known.includes(name))
  if (unknown !== undefined) return `unknown parameter ${JSON.stringify(unknown)}; known: ${known.join(', ')}`
  const empty = known.find((name) => query.get(name) === '')
  return empty && `${empty} is empty`
}

async function orFailure(work: () => Answer<object>): Promise<{ readonly status: number; readonly json: object }> {
  try {
    return { status: 200, json: await work() }
  } catch (error) {
    const { code, status } = asFailure(error)
    return { status, json: { error: code } }
  }
}

const refuse = (description: string) => ({
  status: 400,
  json: { error: 'invalid_request', error_description: description },
})
