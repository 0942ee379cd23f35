import { type CrdKind, customResourceDefinition } from '../../../src/load/publish/index.ts'
import { GROUP } from './operator-rig.ts'

/** Kinds of the definitions that had one version. */
export const EARLIER_KINDS: readonly CrdKind[] = [
  'MCPExternalAuthConfig',
  'MCPRemoteProxy',
  'MCPServer',
  'MCPServerEntry',
  'VirtualMCPServer',
]

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly [keyword: string]: unknown
}
interface Version {
  readonly name: string
  readonly storage: boolean
  readonly schema: { readonly openAPIV3Schema: Schema }
}
interface Definition {
  readonly spec: { readonly versions: readonly Version[] }
}

const definitionOf = (kind: CrdKind): Definition => customResourceDefinition(GROUP, kind) as unknown as Definition

/** The definition as it was when there was one version. */
export function earlierDefinition(kind: CrdKind): object {
  const { spec, ...rest } = definitionOf(kind)
  const [first] = spec.versions
  return { ...rest, spec: { ...spec, conversion: undefined, versions: [{ ...first, storage: true }] } }
}

/** A definition as a next release may have it: one more version, which is stored, with another field of the status. */
export function laterDefinition(kind: CrdKind): object {
  const { spec, ...rest } = definitionOf(kind)
  const older = spec.versions.map((version) => ({ ...version, ...withNewStatus(version), storage: false }))
  const newest = older.at(-1)
  return { ...rest, spec: { ...spec, versions: [...older, { ...newest, name: 'v1', storage: true }] } }
}

function withNewStatus({ schema: { openAPIV3Schema: schema } }: Version): Pick<Version, 'schema'> {
  const { status = {} } = schema.properties ?? {}
  const next = { ...status, type: 'object', properties: { ...status.properties, ofTheNext: { type: 'string' } } }
  return { schema: { openAPIV3Schema: { ...schema, properties: { ...schema.properties, status: next } } } }
}
