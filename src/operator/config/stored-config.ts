import type { KubeObject } from '../../kube/index.ts'
import type { Loaded } from '../../load/index.ts'
import { validateObject } from '../object-rules.ts'

/** A validated configuration of the cluster: its problems, or its requirements. */
export type StoredConfig<T> =
  | { readonly problems: readonly string[]; readonly valid?: undefined }
  | { readonly problems: readonly []; readonly valid: T }

/**
 * Validates a stored configuration. `needs` returns the requirements of a valid one; undefined if the documents
 * contain none of its kind.
 */
export function validateStored<T>(
  object: KubeObject,
  apiGroup: string,
  needs: (loaded: Loaded) => T | undefined,
): StoredConfig<T> {
  const { loaded, problems } = validateObject(object, apiGroup)
  if (problems.length > 0) return { problems }
  const valid = needs(loaded)
  return valid === undefined ? { problems: ['not a configuration'] } : { problems: [], valid }
}

/** Caches results by spec object: the observed state keeps the same object until the spec changes. */
export class BySpec<T> {
  readonly #known = new WeakMap<object, T>()

  has(object: KubeObject): boolean {
    return this.#known.has(specOf(object))
  }

  set(object: KubeObject, known: T): T {
    this.#known.set(specOf(object), known)
    return known
  }

  of(object: KubeObject, validate: (object: KubeObject) => T): T {
    return this.#known.get(specOf(object)) ?? this.set(object, validate(object))
  }
}

const specOf = (object: KubeObject): object =>
  typeof object.spec === 'object' && object.spec !== null ? object.spec : object
