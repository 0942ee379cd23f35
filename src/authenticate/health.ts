import { causeOf, type Failure, type Log, type Metrics } from '../core/index.ts'

/** What is asked of a provider. */
export type Question = 'keys' | 'introspection'

/** Tells log and metrics how a provider's answers fare: one line when it turns bad, one when it is good again. */
export interface Health {
  note(question: Question, failure: Failure | undefined): void
  /** How many of its keys are at hand. */
  keysAtHand(count: number): void
  /** Nothing is told of it any more: an answer that comes later would make its series anew, and for ever. */
  close(): void
}

export function createHealth(provider: string, log: Log, metrics: Metrics): Health {
  const counter = metrics.counter('extauth_provider_requests_total', 'Questions to identity providers, by outcome.', [
    'name',
    'type',
    'outcome',
  ])
  const atHand = metrics
    .gauge(
      'extauth_provider_keys',
      'Keys of an identity provider that are at hand; 0 while they never came.',
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
        if (before !== undefined) log.info({ provider, question }, 'the identity provider answers again')
        failing.delete(question)
        return
      }
      const now = `${failure.code} ${failure.detail ?? ''}`
      if (now === before) return
      failing.set(question, now)
      const { code, detail } = failure
      log.warn(
        { provider, question, code, detail, cause: causeOf(failure.cause) },
        'the identity provider does not help',
      )
    },
    keysAtHand(count) {
      if (!isClosed) atHand.set(count)
    },
    close() {
      isClosed = true
    },
  }
}
