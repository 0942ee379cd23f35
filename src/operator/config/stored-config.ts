import type { KubeObject } from '../../kube/index.ts'
import type { Loaded } from '../../load/index.ts'
import { validateObject } from '../object-rules.ts'

/** What a configuration of the cluster is to us: its problems, or what it needs. */
export type StoredConfig<T> =
  | { readonly problems: readonly string[]; readonly valid?: undefined }
  | { readonly problems: readonly []; readonly valid: T }

/**
 * Validates a stored configuration. `needs` says what a valid one needs; undefined where there is none of its kind among what
 * was read.
 */
export function judgeStored<T>(
  object: KubeObject,
  apiGroup: string,
  needs: (loaded: Loaded) => T | undefined,
): StoredConfig<T> {
  const { loaded, problems } = validateObject(object, apiGroup)
  if (problems.length > 0) return { problems }
  const valid = needs(loaded)
  return valid === undefined ? { problems: ['not a configuration'] } : { problems: [], valid }
}

/** What is known of stored objects, by spec: what is observed holds the same one until it changes. */
export class BySpec<T> {
  readonly #known = new WeakMap<object, T>()

  has(object: KubeObject): boolean {
    return this.#known.has(specOf(object))
  }

  set(object: KubeObject, known: T): T {
    this.#known.set(specOf(object), known)
    return known
  }

  of(object: KubeObject, judge: (object: KubeObject) => T): T {
    return this.#known.get(specOf(object)) ?? this.set(object, judge(object))
  }
}

const specOf = (object: KubeObject): object =>
  typeof object.spec === 'object' && object.spec !== null ? object.spec : object
