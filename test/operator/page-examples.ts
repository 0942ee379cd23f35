import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '../../src/kube/index.ts'

const PAGE = readFileSync(path.join(import.meta.dirname, '../../docs/kubernetes.md'), 'utf8')
const SECTION = /^### An example of each type\n([\s\S]*?)^#{2,3} /m.exec(PAGE)?.[1] ?? ''

/** How many blocks of YAML the section has. */
export const BLOCKS = SECTION.match(/^```yaml$/gm)?.length ?? 0

/** The examples of docs/kubernetes.md, one of each type, as the page has them. Throws where one is no YAML. */
export const EXAMPLES = [...SECTION.matchAll(/^\*\*(.*)\n\n```yaml\n([\s\S]*?)^```/gm)].map(
  ([, about = '', text = '']) => ({
    title: about.slice(0, about.indexOf(':')).replaceAll('*', ''),
    objects: parseAllDocuments(text).map((document) => {
      if (document.errors[0] !== undefined) throw document.errors[0]
      return document.toJS() as KubeObject
    }),
  }),
)

/** The type of external auth that a config is of; undefined of other objects. */
export const typeOf = ({ spec }: KubeObject): unknown => (spec as { type?: unknown }).type

/** The one proxy of an example. */
export function proxyOf(objects: readonly KubeObject[]): { readonly name: string; readonly namespace: string } {
  const [proxy, ...more] = objects.filter(({ kind }) => kind === 'MCPRemoteProxy')
  if (proxy === undefined || more.length > 0) throw new Error('an example has one proxy')
  return { name: proxy.metadata.name, namespace: proxy.metadata.namespace ?? '' }
}

/** The keys of Secrets that these objects name, by Secret. */
export function secretKeysIn(
  objects: readonly KubeObject[],
): { readonly name: string; readonly keys: readonly string[] }[] {
  const found = refsIn(objects, '')
  return [...new Set(found.map(({ name }) => name))].map((name) => ({
    name,
    keys: found.filter((ref) => ref.name === name).map(({ key }) => key),
  }))
}

function refsIn(value: unknown, field: string): { readonly name: string; readonly key: string }[] {
  if (Array.isArray(value)) return value.flatMap((item) => refsIn(item, field))
  if (typeof value !== 'object' || value === null) return []
  if (/SecretRefs?$/.test(field)) return [value as { name: string; key: string }]
  return Object.entries(value).flatMap(([name, inner]) => refsIn(inner, name))
}
