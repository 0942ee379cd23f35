/** What the list can be narrowed to. Empty means: all. */
export const NO_FILTERS = { route: '', status: '', reason: '', rpcMethod: '', rpcName: '', text: '', body: '' }

/** `2xx`, or `open` for one that is not over. */
export const statusClassOf = ({ isOpen, status }) => (isOpen ? 'open' : `${Math.floor(status / 100)}xx`)

const TEXTS = ['id', 'route', 'type', 'method', 'target', 'rpcMethod', 'rpcName', 'caller', 'subject', 'reason']

/**
 * Whether a request passes; free text is looked for in everything that the list shows, without regard to case. `found` are the
 * ids of those whose bodies have what is looked for there; undefined while that is not known.
 */
export function passes(request, filters, found) {
  if (found !== undefined && !found.has(request.id)) return false
  if (filters.route !== '' && (request.route || NO_ROUTE) !== filters.route) return false
  if (filters.status !== '' && statusClassOf(request) !== filters.status) return false
  if (filters.reason !== '' && request.reason !== filters.reason) return false
  if (filters.rpcMethod !== '' && request.rpcMethod !== filters.rpcMethod) return false
  if (filters.rpcName !== '' && request.rpcName !== filters.rpcName) return false
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return true
  const all = [...TEXTS.map((name) => request[name] ?? ''), String(request.status)].join(' ').toLowerCase()
  return words.every((word) => all.includes(word))
}

export const NO_ROUTE = '(no route)'

/** The values that there are to choose from, sorted. */
export function choicesOf(requests) {
  const sets = { route: new Set(), status: new Set(), reason: new Set(), rpcMethod: new Set(), rpcName: new Set() }
  for (const request of requests) {
    sets.route.add(request.route || NO_ROUTE)
    sets.status.add(statusClassOf(request))
    for (const name of ['reason', 'rpcMethod', 'rpcName']) if (request[name]) sets[name].add(request[name])
  }
  return Object.fromEntries(
    Object.entries(sets).map(([name, set]) => [name, [...set].toSorted((one, other) => one.localeCompare(other))]),
  )
}

/** The requests after a batch: changed ones in their place, new ones at the end, without those that are gone, no more than `most`. */
export function merged(requests, batch, most, gone = []) {
  const left = new Set(gone)
  const changed = new Map(batch.map((one) => [one.id, one]))
  const kept = requests.map((one) => {
    const next = changed.get(one.id)
    changed.delete(one.id)
    return next ?? one
  })
  return [...kept, ...changed.values()].filter(({ id }) => !left.has(id)).slice(-most)
}
