import { causeOf, type Failure, type Log, type Metrics } from '../core/index.ts'

/** Kind of provider request. */
export type Question = 'keys' | 'introspection'

/** Logs and counts the availability of a provider: one line when it fails, one on recovery. */
export interface Health {
  note(question: Question, failure: Failure | undefined): void
  /** The number of available keys. */
  keysAtHand(count: number): void
  /** Stops reporting: a later response would recreate the metric series forever. */
  close(): void
}

export function createHealth(provider: string, log: Log, metrics: Metrics): Health {
  const counter = metrics.counter('extauth_provider_requests_total', 'Requests to identity providers, by outcome.', [
    'name',
    'type',
    'outcome',
  ])
  const atHand = metrics
    .gauge(
      'extauth_provider_keys',
      'Available keys of an identity provider; 0 until they were fetched.',
      ['name'],
      'min',
    )
    .with(provider)
  const failing = new Map<Question, string>()
  let isClosed = false
  return {
    note(question, failure) {
      if (isClosed) return
      counter.with(provider, question, failure === undefined ? 'ok' : failure.code).add()
      const before = failing.get(question)
      if (failure === undefined) {
        if (before !== undefined) log.info({ provider, question }, 'identity provider available again')
        failing.delete(question)
        return
      }
      const now = `${failure.code} ${failure.detail ?? ''}`
      if (now === before) return
      failing.set(question, now)
      const { code, detail } = failure
      log.warn({ provider, question, code, detail, cause: causeOf(failure.cause) }, 'identity provider unavailable')
    },
    keysAtHand(count) {
      if (!isClosed) atHand.set(count)
    },
    close() {
      isClosed = true
    },
  }
}
