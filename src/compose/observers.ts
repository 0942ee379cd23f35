import type { Failure, RequestObserver, RequestTrace } from '../core/index.ts'

/** Combines observers; undefined without any. */
export function observersOf(list: readonly (RequestObserver | undefined)[]): RequestObserver | undefined {
  const observers = list.filter((observer) => observer !== undefined)
  const [only] = observers
  if (observers.length < 2) return only
  return {
    arrived(inbound) {
      const traces = observers.flatMap((observer) => observer.arrived(inbound) ?? [])
      const [one] = traces
      return traces.length < 2 ? one : all(traces)
    },
  }
}

function all(traces: readonly RequestTrace[]): RequestTrace {
  const wantsBody = traces.some((each) => 'requestBody' in each)
  return {
    dropped: (name, rule) => traces.forEach((each) => each.dropped(name, rule)),
    matched: (matched) => traces.forEach((each) => each.matched(matched)),
    known: (known) => traces.forEach((each) => each.known(known)),
    ...(traces.some((each) => 'admit' in each) ? { admit: () => firstOf(traces, (each) => each.admit?.()) } : {}),
    attempt: (attempt, lookup) => traces.forEach((each) => each.attempt(attempt, lookup)),
    armed: (armed) => traces.forEach((each) => each.armed(armed)),
    sealed: (sealed) => traces.forEach((each) => each.sealed(sealed)),
    sending: () => traces.forEach((each) => each.sending()),
    ...(wantsBody ? { requestBody: (chunk: Buffer) => traces.forEach((each) => each.requestBody?.(chunk)) } : {}),
    refusedBody: (body) => traces.forEach((each) => each.refusedBody?.(body)),
    received: (status, headers) => traces.forEach((each) => each.received(status, headers)),
    again: (again) => traces.forEach((each) => each.again(again)),
    ...(traces.some((each) => 'beforeResponse' in each)
      ? {
          beforeResponse: (status: number, failure?: Failure) =>
            firstOf(traces, (each) => each.beforeResponse?.(status, failure)),
        }
      : {}),
    responded: (status, headers) => traces.forEach((each) => each.responded(status, headers)),
    body: (chunk) => traces.forEach((each) => each.body(chunk)),
    finished: (result) => traces.forEach((each) => each.finished(result)),
  }
}

/** Only the audit trail delays requests. */
const firstOf = (
  traces: readonly RequestTrace[],
  ask: (trace: RequestTrace) => Promise<void> | undefined,
): Promise<void> | undefined => traces.map(ask).find((wait) => wait !== undefined)
