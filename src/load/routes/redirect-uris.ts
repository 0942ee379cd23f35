import { fileProblem, type Problem } from '../documents/problem.ts'
import type { ResolvedRoute } from '../../resources/index.ts'

/**
 * The URIs that have to be registered at the upstream providers of authorization servers: what `redirectUri` says, else
 * `{resourceUrl}/oauth/callback` of each resource (authserver.md §2.1). `address` is the bind, for resources that have no
 * URL but the listener's.
 */
export function redirectUris(routes: readonly ResolvedRoute[], address: string): Problem[] {
  const found = new Map<string, Problem>()
  for (const { authServer, resourceUrl, path } of routes) {
    if (authServer === undefined) continue
    const { server, providers } = authServer
    const resource = (resourceUrl ?? `http://${address}${path}`).replace(/\/$/, '')
    for (const { name, oidcConfig, oauth2Config } of server.spec.upstreamProviders) {
      // Who registers by itself says them itself.
      if (!providers.includes(name) || oauth2Config?.dcrConfig !== undefined) continue
      const uri = (oidcConfig ?? oauth2Config)?.redirectUri ?? `${resource}/oauth/callback`
      const message = `register at the upstream provider "${name}" of "${server.name}" the redirect URI ${uri}`
      found.set(message, fileProblem(server.source.file, message, { line: server.source.line, column: 1 }))
    }
  }
  return [...found.values()]
}
