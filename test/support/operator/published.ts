import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'

/** An MCPRemoteProxy that is published for another operator, with what it refers to. */
export interface Published {
  readonly shape: string
  /** `pods`, or the field or reason that a refusal names. */
  readonly becomes: string
  /** The result after `extauth convert`. Default: the same. */
  readonly converted?: string
  readonly complete?: boolean
  /** Of the group. Default `v1beta1`. */
  readonly version?: string
  readonly objects: readonly PublishedObject[]
}

export interface PublishedObject {
  readonly kind: string
  readonly name: string
  readonly spec: Readonly<Record<string, unknown>>
}

/** Every published MCPRemoteProxy, with other names. */
export const readPublished = (): readonly Published[] =>
  parse(readFileSync(path.join(import.meta.dirname, 'corpus/remote-proxies.yaml'), 'utf8')) as readonly Published[]

/** The MCPRemoteProxy of a published document. */
export function proxyOf({ objects, shape }: Published): PublishedObject {
  const proxy = objects.find(({ kind }) => kind === 'MCPRemoteProxy')
  if (proxy === undefined) throw new Error(`no MCPRemoteProxy: ${shape}`)
  return proxy
}
