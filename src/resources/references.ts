import type { DocumentKind } from './document-kinds.ts'
import { isRecord } from './rules.ts'

/** A reference to an MCPExternalAuthConfig as it is written, in a document that may have other problems. */
export interface FoundReference {
  readonly name: string
  readonly path: readonly PropertyKey[]
}

/** All references of a document, so that one that leads nowhere is told about in the same run as other problems. */
export function referencesOf(kind: DocumentKind, value: Readonly<Record<string, unknown>>): FoundReference[] {
  const { spec } = value
  if (!isRecord(spec)) return []
  switch (kind) {
    case 'MCPExternalAuthConfig':
      return []
    case 'ProxyConfig': {
      const routes: readonly unknown[] = Array.isArray(spec.routes) ? spec.routes : []
      return routes.flatMap((route, index) => at(route, ['spec', 'routes', index], ['externalAuthConfigRef']))
    }
    case 'VirtualMCPServer':
      return at(spec, ['spec'], ['outgoingAuth', 'default', 'externalAuthConfigRef'])
    case 'MCPServerEntry':
      return at(spec, ['spec'], ['externalAuthConfigRef'])
    default:
      return [...at(spec, ['spec'], ['externalAuthConfigRef']), ...at(spec, ['spec'], ['authServerRef'])]
  }
}

function at(object: unknown, base: readonly PropertyKey[], steps: readonly string[]): FoundReference[] {
  let current = object
  for (const step of [...steps, 'name']) {
    if (!isRecord(current)) return []
    current = current[step]
  }
  return typeof current === 'string' && current !== '' ? [{ name: current, path: [...base, ...steps, 'name'] }] : []
}
