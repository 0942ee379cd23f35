import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import { CRD_KINDS, type CrdKind } from '../../../../../src/load/publish/index.ts'
import { EMBEDDED_EXAMPLES } from '../../../resources/examples-embedded.ts'
import { OUTGOING_EXAMPLES } from '../../../resources/examples-outgoing.ts'
import { document } from '../validators.ts'
import { FORMS, PROXY_FORMS } from '../../../resources/verdicts/forms.ts'
import { METADATA } from '../../../resources/verdicts/metadata.ts'
import { spoil } from '../../../resources/verdicts/spoil.ts'
import { INTROSPECTION_CLIENTS } from './introspection-clients.ts'
import { TRACES } from './telemetry.ts'
import { WHOLE } from './whole.ts'

type Json = { [name: string]: unknown }

/** An object that files and an API server must judge alike. */
export interface JudgedObject {
  readonly kind: CrdKind
  readonly what: string
  /** As JSON has it: nothing is undefined. */
  readonly object: Json
}

const objectOf = (kind: CrdKind, what: string, object: unknown): JudgedObject => ({
  kind,
  what: `${kind}: ${what}`,
  object: JSON.parse(JSON.stringify(object)) as Json,
})

/** The manifests of test/fixtures, as objects of our group. */
function corpus(): JudgedObject[] {
  const folder = path.join(import.meta.dirname, '../../../../fixtures/manifests')
  return readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) =>
      parseAllDocuments(readFileSync(path.join(folder, name), 'utf8')).flatMap((document, index) => {
        const object = document.toJS() as Json
        const kind = CRD_KINDS.find((one) => one === object['kind'])
        const { status: _status, ...rest } = object
        const shown = { ...rest, apiVersion: 'extauth.dev/v1beta1' }
        return kind === undefined ? [] : [objectOf(kind, `${name} ${index}`, shown)]
      }),
    )
}

const inVersion = ({ kind, what, object }: JudgedObject, apiVersion: string): JudgedObject => ({
  kind,
  what,
  object: { ...object, apiVersion },
})

/** All objects of the table, each once, in both versions of the group. */
export function judgedObjects(): JudgedObject[] {
  const seen = new Map<CrdKind, Set<string>>()
  const spoiled = [...WHOLE, ...TRACES].flatMap(([kind, spec], index) => {
    const object = document(spec, kind)
    const fields = seen.get(kind) ?? new Set()
    seen.set(kind, fields)
    const variants = [...spoil(object, fields)].map((one) => objectOf(kind, `${index} ${one.what}`, one.object))
    return [objectOf(kind, `whole ${index}`, object)].concat(variants)
  })
  const all = [
    ...[...OUTGOING_EXAMPLES, ...EMBEDDED_EXAMPLES].map(({ name, spec }) =>
      objectOf('MCPExternalAuthConfig', name, document(spec)),
    ),
    ...spoiled,
    ...FORMS.map(([what, spec]) => objectOf('MCPExternalAuthConfig', what, document(spec))),
    ...PROXY_FORMS.map(([what, spec]) => objectOf('MCPRemoteProxy', what, document(spec, 'MCPRemoteProxy'))),
    ...INTROSPECTION_CLIENTS.map(([kind, what, spec]) => objectOf(kind, what, document(spec, kind))),
    ...corpus(),
    ...METADATA.map((metadata, index) =>
      objectOf('MCPExternalAuthConfig', `metadata ${index} ${JSON.stringify(metadata).slice(0, 80)}`, {
        ...document({ type: 'unauthenticated' }),
        metadata,
      }),
    ),
  ]
  const versions = ['extauth.dev/v1alpha1', 'extauth.dev/v1beta1']
  const inEach = all.flatMap((one) =>
    // Forms of `apiVersion` are validated unchanged.
    versions.includes(String(one.object['apiVersion']))
      ? versions.map((apiVersion): JudgedObject => inVersion(one, apiVersion))
      : [one],
  )
  return [...new Map(inEach.map((one) => [JSON.stringify(one.object), one])).values()]
}
