import { isRecord } from '../../fields/index.ts'
import { policiesIn } from '../cedar/authz-config.ts'
import { readYaml } from '../yaml/yaml.ts'
import type { Reader } from './document-reader.ts'
import type { PolicySet } from './loaded.ts'
import type { Located } from './problem.ts'

/** Where documents have policies; the first is an `authz.json`. */
const PATHS: readonly (readonly string[])[] = [
  [],
  ['spec'],
  ['spec', 'authzConfig'],
  ['spec', 'incomingAuth', 'authzConfig'],
  ['spec', 'config', 'incomingAuth', 'authz'],
]

/** Adds the Cedar policies of a document, or those in the data of a ConfigMap. */
export function addPolicySets(
  { loading, context }: Reader,
  value: Readonly<Record<string, unknown>>,
  place: Located<unknown>,
  named: Pick<PolicySet, 'kind' | 'namespace' | 'name'>,
): void {
  const add = (path: readonly string[], config: unknown): void => {
    const found = policiesIn(config)
    if (found !== undefined) loading.policies.push({ ...place, document: { ...named, path, found } })
  }
  if (named.kind !== 'ConfigMap') {
    for (const path of PATHS) add(path, valueAt(value, path))
    return
  }
  for (const [key, text] of Object.entries(isRecord(value.data) ? value.data : {}))
    if (typeof text === 'string' && /\b(cedar|http)v1\b/.test(text))
      for (const document of readYaml(text, context.budget).documents) add(['data', key], document.value)
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((part, name) => (isRecord(part) ? part[name] : undefined), value)
