import type { Declared, Loading } from '../documents/loaded.ts'
import { routeNameAt, type Problem } from '../documents/problem.ts'

/** Adds to each problem of an MCPExternalAuthConfig the routes that refer to it, which cannot start. */
export function addAffectedRoutes(loading: Loading): void {
  const users = new Map<string, Set<string>>()
  for (const referrer of loading.declared) {
    for (const { name, path } of referrer.references) {
      const key = JSON.stringify([referrer.namespace, name])
      const routes = users.get(key) ?? new Set()
      routes.add(routeNameAt(referrer.place.document, [], path) ?? referrer.name)
      users.set(key, routes)
    }
  }
  const namespaces = new Map<string, Declared[]>()
  for (const declared of loading.declared) {
    if (declared.kind !== 'MCPExternalAuthConfig') continue
    const list = namespaces.get(declared.name) ?? []
    list.push(declared)
    namespaces.set(declared.name, list)
  }
  const withRoutes = (problem: Problem): Problem => {
    if (problem.kind !== 'MCPExternalAuthConfig' || problem.routes !== undefined) return problem
    const namespace = namespaces.get(problem.name)?.find(({ place }) => place.file === problem.file)?.namespace
    const routes = users.get(JSON.stringify([namespace, problem.name]))
    return routes === undefined ? problem : { ...problem, routes: [...routes] }
  }
  loading.problems = loading.problems.map(withRoutes)
}
