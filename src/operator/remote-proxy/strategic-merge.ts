type Json = Record<string, unknown>

/** Lists of a pod template that are merged by a key (`patchMergeKey` of the API). */
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

/** kubectl's order directive, which a template does not have: base items come first, others in their order. */
const ORDER = '$setElementOrder/'
const DELETE_FROM = '$deleteFromPrimitiveList/'

/**
 * A strategic merge of a pod template: objects are merged, lists with a merge key by that key, other lists replaced;
 * `null` removes. `$patch: delete` removes the item of a keyed list or the content of an object, `$patch: replace`
 * replaces its list or object; `$retainKeys` and `$deleteFromPrimitiveList` work as in the API.
 */
export function strategicMerge(base: unknown, patch: unknown, field = ''): unknown {
  if (patch === undefined) return base
  const keys = MERGE_KEYS[field]
  if (Array.isArray(patch) && keys !== undefined && patch.every(isObject))
    return mergeLists(Array.isArray(base) ? (base as Json[]) : [], patch, keys)
  if (!isObject(patch)) return patch
  const { $patch: directive, $retainKeys: retained, ...fields } = patch
  const isNew = !isObject(base) || directive === 'replace' || directive === 'delete'
  const start: Json = isNew ? {} : { ...base }
  if (directive === 'delete') return start
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith(ORDER)) continue
    if (name.startsWith(DELETE_FROM)) removeFrom(start, name.slice(DELETE_FROM.length), value)
    else if (value === null) delete start[name]
    else start[name] = strategicMerge(start[name], value, name)
  }
  if (Array.isArray(retained)) for (const name of Object.keys(start)) if (!retained.includes(name)) delete start[name]
  return start
}

function removeFrom(object: Json, name: string, values: unknown): void {
  const list = object[name]
  if (Array.isArray(list) && Array.isArray(values)) object[name] = list.filter((value) => !values.includes(value))
}

function mergeLists(before: readonly Json[], patch: readonly Json[], keys: readonly string[]): Json[] {
  const isReplaced = patch.some((item) => item['$patch'] === 'replace' && keys.every((key) => item[key] === undefined))
  const base = isReplaced ? [] : before
  const items = isReplaced ? patch.filter((item) => item['$patch'] !== 'replace') : patch
  const same = (one: Json, other: Json): boolean => keys.every((key) => one[key] === other[key])
  const merged = base.flatMap((item) => {
    const change = items.find((one) => same(one, item))
    if (change === undefined) return [item]
    if (change['$patch'] === 'delete') return []
    const changed = strategicMerge(item, change)
    return isObject(changed) ? [changed] : []
  })
  const added = items.filter((one) => one['$patch'] !== 'delete' && !base.some((item) => same(one, item)))
  return [...merged, ...added.map((item) => strategicMerge({}, item)).filter(isObject)]
}
