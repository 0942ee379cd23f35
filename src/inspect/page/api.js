/** The inspector's API, the only server that the page calls. */
const API = '/inspect/api'

/** Identifies requests of this page to the admin listener. */
const OURS = { 'x-extauth-inspect': '1' }

/** A failed API call; `status` 401 means that a login is required. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

async function failureOf(response) {
  const { error = '', error_description: description = '' } = await response.json().catch(() => ({}))
  return new ApiError(response.status, description || error || `The admin listener answered ${response.status}.`)
}

/** JSON from a path below the API. Throws `ApiError`. */
export async function load(path) {
  const response = await fetch(API + path)
  if (!response.ok) throw await failureOf(response)
  return response.json()
}

/** Sends DELETE to a path of the API; returns the response. */
export async function remove(path) {
  const response = await fetch(API + path, { method: 'DELETE', headers: OURS })
  if (!response.ok) throw await failureOf(response)
  return response.status === 204 ? undefined : response.json()
}

/** Opens a session with the admin token; the page does not store the token. */
export async function logIn(token) {
  const response = await fetch('/inspect/login', {
    method: 'POST',
    headers: { ...OURS, 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  if (!response.ok) throw await failureOf(response)
}

/** Sends an MCP request through the proxy: `{route, method, headers, body, token, user}`. The status is the proxy's. */
export async function sendTry(envelope, signal) {
  const response = await fetch(`${API}/try`, {
    method: 'POST',
    headers: { ...OURS, 'content-type': 'application/json' },
    body: JSON.stringify(envelope),
    signal,
  })
  if (!response.ok) {
    const failure = await failureOf(response)
    if (failure.status === 403 && envelope.user !== undefined) failure.message = `Login refused: ${failure.message}`
    throw failure
  }
  return { status: Number(response.headers.get('x-extauth-try-status')), headers: response.headers, response }
}

/**
 * Follows an event stream; `handlers` by event name get the data. Returns the function that stops it.
 * @param {string} path
 * @param {Record<string, (data: any, source: EventSource) => void>} handlers
 * @param {(state: 'live' | 'waiting' | 'closed') => void} [onState]
 */
export function follow(path, handlers, onState = () => {}) {
  const source = new EventSource(API + path)
  for (const [name, handle] of Object.entries(handlers))
    source.addEventListener(name, (event) => handle(JSON.parse(event.data), source))
  source.addEventListener('open', () => onState('live'))
  source.addEventListener('error', () => onState(source.readyState === EventSource.CLOSED ? 'closed' : 'waiting'))
  return () => source.close()
}
