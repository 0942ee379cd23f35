import { protectedResourceMetadata } from '../authenticate/index.ts'
import type { LocalHandler } from '../core/index.ts'
import { metadataPath } from '../http/index.ts'
import { documentHandler } from '../proxy/index.ts'
import type { AuthSection, ResolvedRoute } from '../resources/index.ts'
import type { ResolvedProxy } from '../load/index.ts'

/** Resource URL of a route: its `resourceUrl`, else its URL on the listener (only on a loopback bind). */
export const resourceUrlOf = (route: ResolvedRoute, listenUrl: string): string =>
  route.resourceUrl ?? new URL(route.path, listenUrl).href.replace(/\/$/, '')

/**
 * The protected resource metadata (RFC 9728). Each protected route has its own; the one at the root belongs to the only
 * protected route, or to the one at `/` (decisions §2.7).
 */
export function resourceDocuments(config: ResolvedProxy, listenUrl: string): readonly LocalHandler[] {
  const documents = new Map<string, object>()
  const isProtected = (route: ResolvedRoute): boolean => route.callers.mode === 'oauth'
  const shielded = config.routes.filter(isProtected)
  for (const route of shielded) {
    const resourceUrl = resourceUrlOf(route, listenUrl)
    const issuer = route.authServer?.server.spec.issuer
    const ownIssuers = issuer === undefined ? [] : [issuer]
    const document = protectedResourceMetadata({ resourceUrl, auth: withScopes(route), ownIssuers })
    documents.set(metadataPath(resourceUrl), document)
    // Behind a proxy that adds or strips a prefix, the document is found by the path that arrives here.
    const local = metadataPath(new URL(route.path, listenUrl).href)
    if (!documents.has(local)) documents.set(local, document)
    if (route.path === '/' || shielded.length === 1) documents.set(metadataPath(new URL('/', listenUrl).href), document)
  }
  return [...documents].map(([address, document]) => documentHandler(address, document))
}

/** Scopes of a route: the advertised ones among those it requires, as clients request the scopes they see. */
export function scopesOf({ callers, requiredScopes }: ResolvedRoute): readonly string[] {
  return [...new Set([...requiredScopes, ...(callers.mode === 'oauth' ? callers.oauth.scopesSupported : [])])]
}

function withScopes(route: ResolvedRoute): AuthSection {
  const { callers } = route
  if (callers.mode === 'anonymous') return callers
  return { ...callers, oauth: { ...callers.oauth, scopesSupported: [...scopesOf(route)] } }
}
