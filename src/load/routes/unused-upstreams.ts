import type { LocatedAuth } from '../documents/loaded.ts'
import type { Problem } from '../documents/problem.ts'
import type { ResolvedRoute } from '../../resources/index.ts'

/**
 * Upstream providers that no login visits: a login goes to the first one and to those whose tokens its route uses
 * (authserver.md §4.5). Whoever configured another means it to be used.
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
