import {
  callerHash,
  logRequest,
  type Caller,
  type Failure,
  type Log,
  type Metrics,
  type RefusedFrom,
} from '../core/index.ts'

/** A request whose response was sent. */
export interface Finished {
  readonly id: string
  readonly method: string
  /** Pattern of the matched route, or undefined. */
  readonly route: string | undefined
  readonly status: number
  readonly elapsedMs: number
  readonly caller: Caller | undefined
  readonly failure: Failure | undefined
  readonly from: RefusedFrom | undefined
}

/** Logs and counts each request once. */
export function createRequestLog(log: Log, metrics: Metrics): (finished: Finished) => void {
  const counter = metrics.counter('extauth_registry_requests_total', 'Requests to the registry API.', [
    'route',
    'outcome',
  ])
  const children = new Map<string, { add(by?: number): void }>()

  return ({ id, method, route, status, elapsedMs, caller, failure, from }) => {
    const outcome = failure?.code ?? 'ok'
    const label = route ?? 'none'
    const key = `${label} ${outcome}`
    let child = children.get(key)
    if (child === undefined) {
      child = counter.with(label, outcome)
      children.set(key, child)
    }
    child.add()
    const line = {
      requestId: id,
      route: route ?? '',
      method,
      caller: callerHash(caller),
      status,
      reason: failure?.code,
      durationMs: Math.round(elapsedMs * 10) / 10,
      from,
    }
    logRequest(log, line, failure)
  }
}
