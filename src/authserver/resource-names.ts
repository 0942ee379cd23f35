import type { AuthServerConfig, AuthServerResource } from './config.ts'

/** The resources of a server by the names that clients give them (RFC 8707). */
export interface ResourceNames {
  /** Compared byte for byte after removing one trailing slash (authserver.md §3). */
  find(indicator: string): AuthServerResource | undefined
  /** The only resource, for requests that name none. */
  readonly only: AuthServerResource | undefined
  /** Every scope of every resource, and `offline_access`. */
  readonly scopes: ReadonlySet<string>
}

/** Asked for by clients that want a refresh token; needs no prompt here and means nothing to a resource (authserver.md §5). */
export const OFFLINE_ACCESS = 'offline_access'

export function resourceNamesOf({ resources }: Pick<AuthServerConfig, 'resources'>): ResourceNames {
  const byName = new Map(resources.map((resource) => [bare(resource.url), resource]))
  const [only] = byName.values()
  return {
    find: (indicator) => byName.get(bare(indicator)),
    only: byName.size === 1 ? only : undefined,
    scopes: new Set([...resources.flatMap(({ scopes }) => scopes), OFFLINE_ACCESS]),
  }
}

const bare = (url: string): string => url.replace(/\/$/, '')
