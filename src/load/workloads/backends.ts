import type { VirtualServerSpec, VirtualServerStatus } from '../../resources/index.ts'

/** A reference and where it is written. */
export interface WrittenReference {
  readonly name: string
  readonly path: readonly PropertyKey[]
}

export const written = (
  found: { readonly name: string } | undefined,
  path: readonly PropertyKey[],
): WrittenReference | undefined => (found === undefined ? undefined : { name: found.name, path })

/** One MCP server behind a workload, which becomes a route. */
export interface Backend {
  readonly name: string
  /** The name of its route, if the workload sets one. */
  readonly routeName?: string | undefined
  readonly url: string
  /** The path of its URL in the document. */
  readonly urlPath: readonly PropertyKey[]
  /** The MCPExternalAuthConfig with its credential. */
  readonly externalAuth: WrittenReference | undefined
}

type Outgoing = NonNullable<NonNullable<VirtualServerSpec['outgoingAuth']>['default']>

/** The backends with a URL, each with its config: its own, the discovered one, or the default. */
export function discoveredBackends(spec: VirtualServerSpec, status: VirtualServerStatus | undefined): Backend[] {
  const { default: fallback, backends = {} } = spec.outgoingAuth ?? {}
  const { routeNames = {} } = spec
  return (status?.discoveredBackends ?? []).flatMap(({ name, url = '', authConfigRef = '' }, index) => {
    if (url === '') return []
    const base = ['status', 'discoveredBackends', index]
    const own = Object.hasOwn(backends, name) ? backends[name] : undefined
    const discovered = typeof authConfigRef === 'string' ? authConfigRef : authConfigRef.name
    const externalAuth =
      outgoingReference(own, ['spec', 'outgoingAuth', 'backends', name]) ??
      (discovered === '' ? undefined : { name: discovered, path: [...base, 'authConfigRef'] }) ??
      outgoingReference(fallback, ['spec', 'outgoingAuth', 'default'])
    const routeName = Object.hasOwn(routeNames, name) ? routeNames[name] : undefined
    return [{ name, routeName, url, urlPath: [...base, 'url'], externalAuth }]
  })
}

/** The config named by an entry itself; none if it points at the discovered one. */
function outgoingReference(entry: Outgoing | undefined, path: readonly PropertyKey[]): WrittenReference | undefined {
  if (entry === undefined || entry.type === 'discovered') return undefined
  return written(entry.externalAuthConfigRef, [...path, 'externalAuthConfigRef', 'name'])
}
