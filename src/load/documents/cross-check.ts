import type { Declared, Loading, LocatedAuth } from './loaded.ts'
import { nearest } from '../../core/index.ts'
import type { Located } from './problem.ts'
import type { FoundReference } from './references.ts'
import { sectionWarnings } from './warnings.ts'

const key = (...parts: readonly string[]): string => parts.join('\n')

/** Kinds of the referenced documents. */
const KINDS = {
  externalAuth: 'MCPExternalAuthConfig',
  authServer: 'MCPExternalAuthConfig',
  callers: 'MCPOIDCConfig',
  telemetry: 'MCPTelemetryConfig',
  tools: 'MCPToolConfig',
} as const satisfies Record<FoundReference['role'], string>

/** Checks that need several documents: duplicates, unresolved references, and rules between documents. */
export function crossCheck(loading: Loading): void {
  const declared = duplicates(loading)
  const auths = new Map(
    loading.auths.map((auth) => [key(auth.document.metadata.namespace, auth.document.metadata.name), auth]),
  )
  for (const referrer of loading.declared) {
    for (const reference of referrer.references) {
      checkReference(loading, declared, referrer, reference)
      if (KINDS[reference.role] !== 'MCPExternalAuthConfig') continue
      checkTarget(loading, auths.get(key(referrer.namespace, reference.name)), referrer, reference)
    }
  }
  for (const proxy of loading.proxies) {
    const { spec } = proxy.document
    if (spec.auth !== undefined) loading.warnings.push(...sectionWarnings(spec.auth, proxy, ['spec', 'auth']))
    for (const [index, { auth }] of spec.routes.entries()) {
      if (auth !== undefined) loading.warnings.push(...sectionWarnings(auth, proxy, ['spec', 'routes', index, 'auth']))
    }
  }
}

/** Reports a second document of the same kind, namespace and name, and names the first. */
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

/** Kinds with a single backend, so that a second upstream would never be used (specification, `upstreamProviders`). */
const SINGLE_UPSTREAM: ReadonlySet<string> = new Set(['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry'])

/** Rules for the target of a reference (authserver.md §2.3, §2.4). */
function checkTarget(
  loading: Loading,
  target: LocatedAuth | undefined,
  { kind, place, references }: Declared,
  { name, path, role }: FoundReference,
): void {
  if (target === undefined) return
  const { spec } = target.document
  const where = `"${name}" (${placeOf(target)})`
  if (spec.type !== 'embeddedAuthServer') {
    if (role !== 'authServer') return
    const message = `${where} has type "${spec.type}", expected "embeddedAuthServer"`
    loading.problems.push(place.problem(path, message))
    return
  }
  const providers = spec.embeddedAuthServer.upstreamProviders.length
  if (SINGLE_UPSTREAM.has(kind) && providers > 1) {
    const message = `${where} has ${providers} upstream providers, ${kind} supports one; a VirtualMCPServer or a ProxyConfig takes several`
    loading.problems.push(place.problem(path, message))
  }
  const owner = path.slice(0, -2).join('\n')
  const isBesideAnother = references.some(
    (other) => other.role === 'authServer' && other.name !== name && other.path.slice(0, -2).join('\n') === owner,
  )
  if (role === 'externalAuth' && isBesideAnother) {
    const message = `${where} is an authorization server already, and "authServerRef" names another one; expected one of them, or the same in both`
    loading.problems.push(place.problem(path, message))
  }
}

/** Reports an unresolved reference with both ends and the nearest existing name. */
function checkReference(
  loading: Loading,
  declared: ReadonlyMap<string, Declared>,
  { place, namespace }: Declared,
  { name, path, role }: FoundReference,
): void {
  const kind = KINDS[role]
  if (declared.has(key(kind, namespace, name))) return
  const message = unresolvedReference([...declared.values()], { kind, namespace, name })
  // An unreadable document could contain the target: name it instead of reporting a second mistake.
  const broken = loading.problems.find((problem) => problem.kind === '')
  const hint = broken === undefined ? '' : `; it may be in the unreadable document at ${broken.file}:${broken.line}`
  loading.problems.push(place.problem(path, `${message}${hint}`))
}

/** The message for an unresolved reference. */
export function unresolvedReference(
  declared: readonly Declared[],
  { kind, namespace, name }: { readonly kind: string; readonly namespace: string; readonly name: string },
): string {
  const candidates = declared.filter((item) => item.kind === kind)
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
      : `; the one at ${placeOf(elsewhere.place)} is in namespace "${elsewhere.namespace}", expected the namespace of the reference`
  return `there is no ${kind} "${name}" in namespace "${namespace}"${hint}`
}

/** `file:line` of a document. */
export const placeOf = (place: Located<unknown>): string => `${place.file}:${place.line}`
