import type { DocumentKind } from './document-kinds.ts'
import { isRecord } from '../../fields/index.ts'

/**
 * A reference to an MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig or MCPToolConfig as written; its
 * document may have other problems.
 */
export interface FoundReference {
  readonly name: string
  readonly path: readonly PropertyKey[]
  /** Purpose: credential of the backend, login, validation of callers, receiver of traces, or allowed tools. */
  readonly role: 'externalAuth' | 'authServer' | 'callers' | 'telemetry' | 'tools'
}

/** All references of a document, so that unresolved ones are reported together with other problems. */
export function referencesOf(kind: DocumentKind, value: Readonly<Record<string, unknown>>): FoundReference[] {
  const { spec, status } = value
  switch (kind) {
    case 'MCPExternalAuthConfig':
    case 'MCPOIDCConfig':
    case 'MCPTelemetryConfig':
    case 'MCPToolConfig':
      return []
    case 'ProxyConfig':
      return [
        ...authServerRef(spec, ['spec']),
        ...items(member(spec, 'routes')).flatMap(([index, route]) => ownReferences(route, ['spec', 'routes', index])),
      ]
    case 'VirtualMCPServer': {
      const outgoing = member(spec, 'outgoingAuth')
      const base = ['spec', 'outgoingAuth']
      const backends = member(outgoing, 'backends')
      return [
        ...telemetry(spec),
        ...externalAuth(member(outgoing, 'default'), [...base, 'default']),
        ...Object.entries(isRecord(backends) ? backends : {}).flatMap(([name, entry]) =>
          externalAuth(entry, [...base, 'backends', name]),
        ),
        ...items(member(status, 'discoveredBackends')).flatMap(([index, backend]) =>
          discovered(member(backend, 'authConfigRef'), ['status', 'discoveredBackends', index, 'authConfigRef']),
        ),
      ]
    }
    case 'MCPServerEntry':
      return [...externalAuth(spec, ['spec']), ...tools(spec)]
    case 'MCPServer':
      return [
        ...ownReferences(spec, ['spec']),
        ...telemetry(spec),
        ...tools(spec),
        ...found(member(member(spec, 'oidcConfigRef'), 'name'), ['spec', 'oidcConfigRef', 'name'], 'callers'),
      ]
    default:
      return [...ownReferences(spec, ['spec']), ...telemetry(spec), ...tools(spec)]
  }
}

type Path = readonly PropertyKey[]

const member = (object: unknown, name: string): unknown => (isRecord(object) ? object[name] : undefined)

const items = (value: unknown): [number, unknown][] => (Array.isArray(value) ? [...value.entries()] : [])

const ownReferences = (object: unknown, path: Path): FoundReference[] => [
  ...externalAuth(object, path),
  ...items(member(object, 'credentials')).flatMap(([index, entry]) =>
    externalAuth(entry, [...path, 'credentials', index]),
  ),
  ...authServerRef(object, path),
]

const externalAuth = (object: unknown, path: Path): FoundReference[] =>
  found(
    member(member(object, 'externalAuthConfigRef'), 'name'),
    [...path, 'externalAuthConfigRef', 'name'],
    'externalAuth',
  )

const authServerRef = (object: unknown, path: Path): FoundReference[] =>
  found(member(member(object, 'authServerRef'), 'name'), [...path, 'authServerRef', 'name'], 'authServer')

const telemetry = (spec: unknown): FoundReference[] =>
  found(member(member(spec, 'telemetryConfigRef'), 'name'), ['spec', 'telemetryConfigRef', 'name'], 'telemetry')

const tools = (spec: unknown): FoundReference[] =>
  found(member(member(spec, 'toolConfigRef'), 'name'), ['spec', 'toolConfigRef', 'name'], 'tools')

/** A discovered backend names its config as a string; an object with `name` is accepted too. */
const discovered = (value: unknown, path: Path): FoundReference[] =>
  isRecord(value) ? found(value['name'], [...path, 'name'], 'externalAuth') : found(value, path, 'externalAuth')

const found = (name: unknown, path: Path, role: FoundReference['role']): FoundReference[] =>
  typeof name === 'string' && name !== '' ? [{ name, path, role }] : []
