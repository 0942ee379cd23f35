import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '../../../src/kube/index.ts'

const PAGES = ['kubernetes.md', 'aws.md'].map((name) => ({
  name,
  text: readFileSync(path.join(import.meta.dirname, '../../../docs', name), 'utf8'),
}))
const SECTION = /^### An example of each type\n([\s\S]*?)^#{2,3} /m.exec(PAGES[0]?.text ?? '')?.[1] ?? ''

/** What is applied together, as a page has it. */
export interface PageExample {
  readonly title: string
  readonly objects: readonly KubeObject[]
}

const objectsIn = (text: string): KubeObject[] =>
  parseAllDocuments(text).map((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0]
    return document.toJS() as KubeObject
  })

/** How many blocks of YAML the section of types has. */
export const BLOCKS = SECTION.match(/^```yaml$/gm)?.length ?? 0

/** The examples of docs/kubernetes.md, one of each type. Throws where one is no YAML. */
export const OF_TYPES: readonly PageExample[] = [
  ...SECTION.matchAll(/^\*\*((?:.+\n)+)\n```yaml\n([\s\S]*?)^```/gm),
].map(([, about = '', text = '']) => ({
  title: about.slice(0, about.indexOf(':')).replaceAll('*', ''),
  objects: objectsIn(text),
}))

/** A config of the section of types that a proxy elsewhere refers to. */
function configFor({ spec, metadata: { namespace } }: KubeObject): KubeObject {
  const { name } = (spec as { externalAuthConfigRef: { name: string } }).externalAuthConfigRef
  const found = OF_TYPES.flatMap(({ objects }) => objects).find(
    ({ kind, metadata }) =>
      kind === 'MCPExternalAuthConfig' && metadata.name === name && metadata.namespace === namespace,
  )
  if (found === undefined) throw new Error(`no page has the config ${namespace}/${name}`)
  return found
}

const ELSEWHERE: readonly PageExample[] = PAGES.flatMap(({ name, text }) =>
  [...text.replace(SECTION, '').matchAll(/^```yaml\n([\s\S]*?)^```/gm)]
    .filter(([, block = '']) => /^kind: MCPRemoteProxy$/m.test(block))
    .map(([, block = '']) => {
      const objects = objectsIn(block)
      const isWhole = objects.some(({ kind }) => kind === 'MCPExternalAuthConfig')
      const proxy = objects.find(({ kind }) => kind === 'MCPRemoteProxy')
      const before = isWhole || proxy === undefined ? [] : [configFor(proxy)]
      return { title: `${proxy?.metadata.name} of ${name}`, objects: [...before, ...objects] }
    }),
)

/** Every example of a proxy on the pages about clusters, with the config that it needs. */
export const EXAMPLES: readonly PageExample[] = [...OF_TYPES, ...ELSEWHERE]

/** The type of external auth that a config is of; undefined of other objects. */
export const typeOf = ({ kind, spec }: KubeObject): unknown =>
  kind === 'MCPExternalAuthConfig' ? (spec as { type?: unknown }).type : undefined

/** The one proxy of an example. */
export function proxyOf(objects: readonly KubeObject[]) {
  const [proxy, ...more] = objects.filter(({ kind }) => kind === 'MCPRemoteProxy')
  if (proxy === undefined || more.length > 0) throw new Error('an example has one proxy')
  const { replicas = 1 } = proxy.spec as { replicas?: number }
  return { name: proxy.metadata.name, namespace: proxy.metadata.namespace ?? '', replicas }
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
  if (/(?:Secret|secretKey)Refs?$/.test(field)) return [value as { name: string; key: string }]
  return Object.entries(value).flatMap(([name, inner]) => refsIn(inner, name))
}
