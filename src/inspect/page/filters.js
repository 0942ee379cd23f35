/** `2xx`, or `open` for one that is in flight. */
export const statusClassOf = ({ isOpen, status }) => (isOpen ? 'open' : `${Math.floor(status / 100)}xx`)

/** The class of its color: of its status, or of a prompt to connect an account, which is no failure. */
export const outcomeClassOf = (request) =>
  request.reason === 'not_connected' ? 'not_connected' : statusClassOf(request)

export const NO_ROUTE = 'none'

/** The terms with a key, and the values that a request has for them. */
const KEYS = {
  status: (request) => [statusClassOf(request), String(request.status)],
  route: (request) => [request.route || NO_ROUTE],
  reason: (request) => [request.reason],
  method: (request) => [request.rpcMethod, request.method],
  tool: (request) => [request.rpcName],
}
const TEXTS = ['id', 'route', 'type', 'method', 'target', 'rpcMethod', 'rpcName', 'caller', 'subject', 'reason']
const BODY = 'body'
/** Characters that the proxy looks for in bodies at most. */
const MOST_SEARCHED = 200

/** Words, and `key:value` pairs of the known keys; quotes keep blanks together. */
const TERM = /(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))/gi

/** A parsed search: `pairs` of key and value, `body` text, and `words` for any listed text. */
export function parseSearch(search) {
  const parsed = { pairs: [], body: '', words: [] }
  for (const [whole, name = '', quoted, bare] of search.matchAll(TERM)) {
    const key = name.toLowerCase()
    const value = (quoted ?? bare).toLowerCase()
    if (key === BODY) parsed.body = (quoted ?? bare).slice(0, MOST_SEARCHED)
    else if (Object.hasOwn(KEYS, key)) parsed.pairs.push([key, value])
    else parsed.words.push((key === '' ? value : whole).toLowerCase())
  }
  return parsed
}

/**
 * Whether a request passes a parsed search, without regard to case. Several values of one key are alternatives. `found` are the
 * ids of the requests whose bodies have the text that is searched for; undefined while that is not known.
 */
export function passes(request, { pairs, words }, found) {
  if (found !== undefined && !found.has(request.id)) return false
  for (const [key] of pairs) {
    const values = new Set(KEYS[key](request).map((value) => (value ?? '').toLowerCase()))
    if (!pairs.some(([other, wanted]) => other === key && values.has(wanted))) return false
  }
  if (words.length === 0) return true
  const all = [...TEXTS.map((name) => request[name] ?? ''), String(request.status)].join(' ').toLowerCase()
  return words.every((word) => all.includes(word))
}

const quoted = (value) => (/\s/.test(value) ? `"${value}"` : value)

/** The `key:value` terms that occur in the list, sorted. */
export function suggestionsFor(requests) {
  const terms = new Set()
  for (const request of requests) {
    for (const [key, valuesOf] of Object.entries(KEYS))
      for (const value of valuesOf(request)) if (value && value !== '0') terms.add(`${key}:${quoted(value)}`)
  }
  return [...terms].toSorted((one, other) => one.localeCompare(other))
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
