/** The common fields of Kubernetes objects, as far as they are used. */
export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: KubeMetadata
  readonly spec?: unknown
  readonly status?: unknown
  readonly data?: unknown
  readonly [field: string]: unknown
}

export interface KubeMetadata {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly [field: string]: unknown
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

/** A kind of object as the API server addresses it. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** Lower-case plural, such as `configmaps`. */
  readonly plural: string
  readonly kind: string
  readonly isNamespaced: boolean
}

export const apiVersionOf = ({ group, version }: ResourceType): string =>
  group === '' ? version : `${group}/${version}`

/** Path of a collection or of an object in it. Names are inserted unescaped, since they are DNS names. */
export function pathOf(type: ResourceType, namespace?: string, name?: string, subresource?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`
  const scope = type.isNamespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  const one = name === undefined ? '' : `/${encodeURIComponent(name)}`
  return `${root}${scope}/${type.plural}${one}${subresource === undefined ? '' : `/${subresource}`}`
}

/**
 * Whether a resource version is later than another of the same kind: API servers count up (KEP-5504). False if one is
 * not a number.
 */
export function isLater(version: string | undefined, than: string | undefined): boolean {
  if (version === undefined || than === undefined || !/^\d+$/.test(version) || !/^\d+$/.test(than)) return false
  return version.length === than.length ? version > than : version.length > than.length
}

/** `namespace/name`, or `name` without a namespace: the key of an object within its kind. */
export const keyOf = ({ metadata }: KubeObject): string =>
  metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`
