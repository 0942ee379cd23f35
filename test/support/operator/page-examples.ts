import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '../../../src/kube/index.ts'

const FOLDER = path.join(import.meta.dirname, '../../../docs')
const PAGE_OF_TYPES = 'kubernetes-examples.md'
const read = (name: string): string => readFileSync(path.join(FOLDER, name), 'utf8')

/** Objects of a page that are applied together. */
export interface PageExample {
  readonly title: string
  readonly objects: readonly KubeObject[]
}

const objectsIn = (text: string): KubeObject[] =>
  parseAllDocuments(text).map((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0]
    return document.toJS() as KubeObject
  })

/** Number of YAML blocks on the page of types. */
export const BLOCKS = read(PAGE_OF_TYPES).match(/^```yaml$/gm)?.length ?? 0

/** The examples of the page of types, in its order. Throws if one is not YAML. */
export const OF_TYPES: readonly PageExample[] = [
  ...read(PAGE_OF_TYPES).matchAll(/^## (.+)\n\n(?:.+\n)+\n```yaml\n([\s\S]*?)^```/gm),
].map(([, title = '', text = '']) => ({ title, objects: objectsIn(text) }))

/** A config of the page of types that a proxy elsewhere refers to. */
function configFor({ spec, metadata: { namespace } }: KubeObject): KubeObject {
  const { name } = (spec as { externalAuthConfigRef: { name: string } }).externalAuthConfigRef
  const found = OF_TYPES.flatMap(({ objects }) => objects).find(
    ({ kind, metadata }) =>
      kind === 'MCPExternalAuthConfig' && metadata.name === name && metadata.namespace === namespace,
  )
  if (found === undefined) throw new Error(`no page has the config ${namespace}/${name}`)
  return found
}

const ELSEWHERE: readonly PageExample[] = globSync('*.md', { cwd: FOLDER })
  .filter((name) => name !== PAGE_OF_TYPES)
  .toSorted()
  .flatMap((name) =>
    [...read(name).matchAll(/^```yaml\n([\s\S]*?)^```/gm)]
      .filter(([, block = '']) => /^kind: MCPRemoteProxy$/m.test(block))
      .map(([, block = '']) => {
        const objects = objectsIn(block)
        const isWhole = objects.some(({ kind }) => kind === 'MCPExternalAuthConfig')
        const proxy = objects.find(({ kind }) => kind === 'MCPRemoteProxy')
        const before = isWhole || proxy === undefined ? [] : [configFor(proxy)]
        return { title: `${proxy?.metadata.name} of ${name}`, objects: [...before, ...objects] }
      }),
  )

/** Every example of an MCPRemoteProxy on a page, with the config that it needs. */
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
