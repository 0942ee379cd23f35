import { fileProblem, type Problem } from '../documents/problem.ts'
import type { ResolvedRoute } from '../../resources/index.ts'
import type { LocatedAuth } from '../documents/loaded.ts'

/**
 * The redirect URIs to register at the upstream providers: `redirectUri`, else `{resourceUrl}/oauth/callback` of each
 * resource (authserver.md §2.1). `address` is the bind, for resources without their own URL.
 */
export function redirectUris(routes: readonly ResolvedRoute[], address: string): Problem[] {
  const found = new Map<string, Problem>()
  for (const { authServer, resourceUrl, path } of routes) {
    if (authServer === undefined) continue
    const { server, providers } = authServer
    const resource = (resourceUrl ?? `http://${address}${path}`).replace(/\/$/, '')
    for (const { name, oidcConfig, oauth2Config } of server.spec.upstreamProviders) {
      // Dynamic registration includes the redirect URIs.
      if (!providers.includes(name) || oauth2Config?.dcrConfig !== undefined) continue
      const uri = (oidcConfig ?? oauth2Config)?.redirectUri ?? `${resource}/oauth/callback`
      const message = `register at the upstream provider "${name}" of "${server.name}" the redirect URI ${uri}`
      found.set(message, fileProblem(server.source.file, message, { line: server.source.line, column: 1 }))
    }
  }
  return [...found.values()]
}

/**
 * Upstream providers that no login visits: a login visits the first one and those whose tokens its route uses
 * (authserver.md §4.5). Configuring another is probably a mistake.
 */
export function unusedUpstreams(routes: readonly ResolvedRoute[], auths: readonly LocatedAuth[]): Problem[] {
  const used = new Map<string, Set<string>>()
  for (const { authServer } of routes) {
    if (authServer === undefined) continue
    const names = used.get(authServer.server.name) ?? new Set()
    used.set(authServer.server.name, names)
    for (const name of authServer.providers) names.add(name)
  }
  return auths.flatMap((located) => {
    const { metadata, spec } = located.document
    const names = used.get(`${metadata.namespace}/${metadata.name}`)
    if (names === undefined || spec.type !== 'embeddedAuthServer') return []
    return spec.embeddedAuthServer.upstreamProviders.flatMap(({ name }, index) => {
      if (names.has(name)) return []
      const path = ['spec', 'embeddedAuthServer', 'upstreamProviders', index, 'name']
      const message =
        'no route uses the tokens of this upstream, so no login visits it; expected a route with upstreamInject or subjectProviderName of this name'
      return [located.problem(path, message)]
    })
  })
}
