import type { Declared, Loading, LocatedAuth } from './loaded.ts'
import { nearest } from '../core/index.ts'
import type { Located } from './problem.ts'
import { sectionWarnings } from './warnings.ts'
import type { Workload } from './workloads.ts'

const key = (...parts: readonly string[]): string => parts.join('\n')

/** What only several documents together can show: duplicates, references that lead nowhere, and their rules. */
export function crossCheck(loading: Loading): void {
  const declared = duplicates(loading)
  for (const { place, namespace, references } of loading.declared) {
    for (const { name, path } of references) checkReference(loading, declared, place, namespace, name, path)
  }
  for (const proxy of loading.proxies) {
    const { spec } = proxy.document
    if (spec.auth !== undefined) loading.warnings.push(...sectionWarnings(spec.auth, proxy, ['spec', 'auth']))
    for (const [index, { auth }] of spec.routes.entries()) {
      if (auth !== undefined) loading.warnings.push(...sectionWarnings(auth, proxy, ['spec', 'routes', index, 'auth']))
    }
  }
  const auths = new Map(
    loading.auths.map((auth) => [key(auth.document.metadata.namespace, auth.document.metadata.name), auth]),
  )
  for (const workload of loading.workloads) checkWorkload(loading, auths, workload)
}

/** One name, one object: a second document of the same kind, namespace and name is a problem that names the first. */
function duplicates(loading: Loading): ReadonlyMap<string, Declared> {
  const first = new Map<string, Declared>()
  for (const declared of loading.declared) {
    const id = key(declared.kind, declared.namespace, declared.name)
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, declared)
    else {
      const message = `there is already a ${declared.kind} "${declared.name}" in namespace "${declared.namespace}" at ${placeOf(earlier.place)}`
      loading.problems.push(declared.place.problem(['metadata', 'name'], message))
    }
  }
  return first
}

/** Rules of what a workload's references lead to. */
function checkWorkload(loading: Loading, auths: ReadonlyMap<string, LocatedAuth>, workload: Located<Workload>): void {
  const { kind, metadata, externalAuth, authServer } = workload.document
  for (const reference of [externalAuth, authServer]) {
    if (reference === undefined) continue
    const auth = auths.get(key(metadata.namespace, reference.name))
    if (auth?.document.spec.type === 'embeddedAuthServer') {
      const providers = auth.document.spec.embeddedAuthServer.upstreamProviders.length
      if (kind !== 'VirtualMCPServer' && providers > 1) {
        const message = `"${reference.name}" (${placeOf(auth)}) has ${providers} upstream providers, ${kind} supports one`
        loading.problems.push(workload.problem(reference.path, message))
      }
    } else if (auth !== undefined && reference === authServer) {
      const message = `"${reference.name}" (${placeOf(auth)}) has type "${auth.document.spec.type}", expected "embeddedAuthServer"`
      loading.warnings.push(workload.problem(reference.path, message))
    }
  }
}

/** A reference that leads nowhere is a problem that names both ends, and what may have been meant. */
function checkReference(
  loading: Loading,
  declared: ReadonlyMap<string, Declared>,
  referrer: Located<unknown>,
  namespace: string,
  name: string,
  path: readonly PropertyKey[],
): void {
  if (declared.has(key('MCPExternalAuthConfig', namespace, name))) return
  const candidates = [...declared.values()].filter((item) => item.kind === 'MCPExternalAuthConfig')
  const elsewhere = candidates.find((item) => item.name === name)
  const meant = nearest(
    name,
    candidates.filter((item) => item.namespace === namespace).map((item) => item.name),
  )
  const hint =
    elsewhere === undefined
      ? meant === undefined
        ? ''
        : `, did you mean "${meant}"?`
      : `; the one at ${placeOf(elsewhere.place)} is in namespace "${elsewhere.namespace}", and references stay within one`
  const message = `there is no MCPExternalAuthConfig "${name}" in namespace "${namespace}"${hint}`
  loading.problems.push(referrer.problem(path, message))
}

/** `file:line` of a document. */
export const placeOf = (place: Located<unknown>): string => `${place.file}:${place.line}`
