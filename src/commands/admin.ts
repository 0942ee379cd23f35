import type { CredentialCache, PurgeFilter } from '../cache/index.ts'
import type { Credential } from '../core/index.ts'
import type { OpsHandler } from '../ops/index.ts'
import type { ResolvedProxy } from '../resources/index.ts'

/** What a reload came to: the new configuration runs, or the old one goes on and these are the problems. */
export type ReloadResult = { readonly ok: true } | { readonly ok: false; readonly problems: readonly string[] }

export interface AdminDeps {
  readonly config: () => ResolvedProxy
  readonly cache: CredentialCache<Credential>
  readonly reload: () => Promise<ReloadResult>
  readonly decisions: () => readonly object[]
}

const FILTERS = ['subject', 'issuer', 'config', 'role'] as const

/** The guarded endpoints of the admin listener (decisions §7): effective config, cache, decisions, reload. */
export function adminEndpoints(deps: AdminDeps): Readonly<Record<string, OpsHandler>> {
  return {
    'GET /config': () => ({ status: 200, json: deps.config() }),
    'GET /cache': () => ({ status: 200, json: deps.cache.list() }),
    'DELETE /cache': ({ query }) => {
      const unknown = [...query.keys()].find((name) => !FILTERS.some((filter) => filter === name))
      // A misspelt filter must not purge everything.
      if (unknown !== undefined)
        return refuse(`unknown parameter ${JSON.stringify(unknown)}; known: ${FILTERS.join(', ')}`)
      const empty = FILTERS.find((name) => query.get(name) === '')
      if (empty !== undefined) return refuse(`${empty} is empty`)
      const filter: PurgeFilter = Object.fromEntries(
        FILTERS.flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : [])),
      )
      return { status: 200, json: { purged: deps.cache.purge(filter) } }
    },
    'GET /decisions': () => ({ status: 200, json: { decisions: deps.decisions() } }),
    'POST /reload': async () => {
      const result = await deps.reload()
      return result.ok
        ? { status: 200, json: { reloaded: true } }
        : { status: 422, json: { reloaded: false, problems: result.problems } }
    },
  }
}

const refuse = (description: string) => ({
  status: 400,
  json: { error: 'invalid_request', error_description: description },
})
