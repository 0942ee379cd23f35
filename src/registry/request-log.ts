import { createHash } from 'node:crypto'
import { causeOf, type AuthenticatedCaller, type Caller, type Failure, type Log, type Metrics } from '../core/index.ts'

/** What is known of a request when its answer has been sent. */
export interface Finished {
  readonly id: string
  readonly method: string
  /** Pattern of the matched route, or undefined. */
  readonly route: string | undefined
  readonly status: number
  readonly elapsedMs: number
  readonly caller: Caller | undefined
  readonly failure: Failure | undefined
}

const HASH_LENGTH = 16

/** One caller in many lines can be followed, and nobody is named: 16 hex of SHA-256 over issuer and caller's identity. */
function createCallerHash(): (caller: AuthenticatedCaller) => string {
  const known = new WeakMap<AuthenticatedCaller, string>()
  return (caller) => {
    let hash = known.get(caller)
    if (hash === undefined) {
      const text = JSON.stringify([caller.issuer, caller.identity])
      hash = createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH)
      known.set(caller, hash)
    }
    return hash
  }
}

/** Writes one line and counts once per request. */
export function createRequestLog(log: Log, metrics: Metrics): (finished: Finished) => void {
  const callerHash = createCallerHash()
  const counter = metrics.counter('extauth_registry_requests_total', 'Requests to the registry API.', [
    'route',
    'outcome',
  ])
  const children = new Map<string, { add(by?: number): void }>()

  return ({ id, method, route = 'none', status, elapsedMs, caller, failure }) => {
    const outcome = failure?.code ?? 'ok'
    const key = `${route} ${outcome}`
    let child = children.get(key)
    if (child === undefined) {
      child = counter.with(route, outcome)
      children.set(key, child)
    }
    child.add()
    const who = caller?.kind === 'authenticated' ? { provider: caller.provider, caller: callerHash(caller) } : undefined
    const why =
      failure === undefined
        ? undefined
        : { reason: failure.code, detail: failure.detail, cause: causeOf(failure.cause) }
    const fields = { requestId: id, method, route, status, durationMs: Math.round(elapsedMs * 10) / 10, ...who, ...why }
    log[status >= 500 ? 'warn' : 'info'](fields, 'request')
  }
}
