import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'

const root = path.join(import.meta.dirname, '../../..')
export const CHART = path.join(root, 'charts/mcp-extauth')
/** Output of `helm template` for the chart; written by `npm run test:cluster -- --record chart`. */
export const RECORD_PATH = path.join(import.meta.dirname, 'chart-record.json')

/** Values of the chart, and the Kustomize folder that gives the same. */
export const RENDERINGS: readonly (readonly [folder: string, values: readonly string[]])[] = [
  ['config/deploy/operator', []],
  ['config/deploy/operator-watch-secrets', ['watchSecrets=true']],
  ['config/deploy/operator-namespaced', ['watchNamespace=mcp']],
  [
    'config/deploy/operator-cert-manager',
    ['certManager.issuerRef.kind=ClusterIssuer', 'certManager.issuerRef.name=internal'],
  ],
  ['config/deploy/operator-service-monitor', ['serviceMonitor.create=true']],
  ['config/deploy/operator-beside', ['apiGroup=toolhive.stacklok.dev']],
  ['config/deploy/operator-beside-write-status', ['apiGroup=toolhive.stacklok.dev', 'writeStatus=true']],
]

/** Hashes of objects by kind, namespace and name, however they are written. */
export type Objects = { readonly [name: string]: string }

export interface ChartRecord {
  readonly helm: string
  /** Of all files of the chart. */
  readonly chart: string
  readonly objects: { readonly [folder: string]: Objects }
}

/** Values of the installing user, and Helm's output for them; written with the other record. */
export const VALUES_PATH = path.join(import.meta.dirname, 'chart-values.json')
export interface ValuesRecord {
  readonly values: { readonly [name: string]: unknown }
  /** The objects that they are about. */
  readonly made: {
    readonly Deployment: {
      readonly spec: {
        readonly template: {
          readonly metadata: { readonly annotations: object }
          readonly spec: {
            readonly securityContext: object
            readonly containers: readonly { readonly args: string[] }[]
          }
        }
      }
    }
    readonly NetworkPolicy: { readonly spec: { readonly egress: readonly object[] } }
  }
}
export const readValues = (): ValuesRecord => JSON.parse(readFileSync(VALUES_PATH, 'utf8')) as ValuesRecord

export const readRecord = (): ChartRecord => JSON.parse(readFileSync(RECORD_PATH, 'utf8')) as ChartRecord

/** Hash of all files of the chart. */
export function hashOfChart(): string {
  const names = readdirSync(CHART, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'README.md')
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()
  const hash = createHash('sha256')
  for (const name of names)
    hash
      .update(`${path.relative(CHART, name)}\n`)
      .update(readFileSync(name))
      .update('\n')
  return hash.digest('hex').slice(0, 16)
}

/** The objects of a text with documents. Throws for one that is there twice. */
export function objectsIn(text: string): Objects {
  const objects: Record<string, string> = {}
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as { kind: string; metadata: { name: string; namespace?: string } } | null
    if (object === null) continue
    const name = [object.kind, object.metadata.namespace ?? '', object.metadata.name].join('/')
    if (name in objects) throw new Error(`${name} is there twice`)
    objects[name] = createHash('sha256').update(canonical(object)).digest('hex').slice(0, 16)
  }
  return objects
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`
}
