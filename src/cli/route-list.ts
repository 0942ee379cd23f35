import type { ResolvedRoute } from '../resources/index.ts'

/** Lists the routes of a proxy at `url`, one line each: address, backend, credential, callers. */
export function routeList(url: string, routes: readonly ResolvedRoute[]): string {
  const rows = routes.map((route) => [
    url.startsWith('unix:') ? route.path : url + route.path,
    // Without the query, which may be confidential.
    `${route.target.origin}${route.target.path}`,
    route.auth.type,
    callersOf(route),
  ])
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map(([at, target, type, callers]) => {
    const cells = [at, target, type].map((cell, column) => (cell ?? '').padEnd(widths[column] ?? 0))
    return `  ${cells.join('  ')}  ${callers}\n`
  })
  return lines.join('')
}

function callersOf({ callers, authServer }: ResolvedRoute): string {
  if (authServer === undefined && callers.mode === 'anonymous') return 'anonymous callers'
  return 'callers with a token'
}
