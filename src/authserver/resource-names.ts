import type { AuthServerConfig, AuthServerResource } from './config.ts'

/** Looks up resources by the names that clients send (RFC 8707). */
export interface ResourceNames {
  /** Compared exactly, after removing one trailing slash (authserver.md §3). */
  find(indicator: string): AuthServerResource | undefined
  /** The only resource, for requests without `resource`. */
  readonly only: AuthServerResource | undefined
  /** All scopes of all resources, and `offline_access`. */
  readonly scopes: ReadonlySet<string>
}

/**
 * Requested by clients that want a refresh token. It needs no prompt here and is not passed to a resource
 * (authserver.md §5).
 */
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
