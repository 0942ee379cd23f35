type Json = Record<string, unknown>

/** Lists of a pod template that are merged by a key, as the API's `patchMergeKey` says. */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  ephemeralContainers: ['name'],
  volumes: ['name'],
  env: ['name'],
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  ports: ['containerPort'],
  imagePullSecrets: ['name'],
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey'],
  resourceClaims: ['name'],
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * A strategic merge of a pod template: objects are merged, lists with a merge key by that key, other lists replaced, `null`
 * removes. `$patch: delete` in an item of a keyed list removes that item, `$patch: replace` in an object replaces it.
 */
export function strategicMerge(base: unknown, patch: unknown, field = ''): unknown {
  if (patch === undefined) return base
  const keys = MERGE_KEYS[field]
  if (Array.isArray(patch) && Array.isArray(base) && keys !== undefined && patch.every(isObject))
    return mergeLists(base as Json[], patch, keys)
  if (!isObject(patch)) return patch
  const { $patch: directive, ...fields } = patch
  const start: Json = isObject(base) && directive !== 'replace' ? { ...base } : {}
  for (const [name, value] of Object.entries(fields)) {
    if (value === null) delete start[name]
    else start[name] = strategicMerge(start[name], value, name)
  }
  return start
}

function mergeLists(base: readonly Json[], patch: readonly Json[], keys: readonly string[]): Json[] {
  const same = (one: Json, other: Json): boolean => keys.every((key) => one[key] === other[key])
  const merged = base.flatMap((item) => {
    const change = patch.find((one) => same(one, item))
    if (change === undefined) return [item]
    if (change['$patch'] === 'delete') return []
    const changed = strategicMerge(item, change)
    return isObject(changed) ? [changed] : []
  })
  const added = patch.filter((one) => one['$patch'] !== 'delete' && !base.some((item) => same(one, item)))
  return [...merged, ...added]
}
