import type { Ticket } from './tickets.ts'

/** Longest time from a link, or from the page that lists connections, to the end of the last login. */
export const FLOW_MS = 10 * 60_000

/** A redirect from which the browser has not returned. */
export interface PendingRedirect {
  /** `manage`: to see the own connections. */
  readonly step: 'person' | 'provider' | 'manage'
  /** Text of the ticket for step `person`; the ticket itself was consumed before step `provider`. */
  readonly link: string
  readonly ticket: Ticket | undefined
  /** Issuer of the login, or the provider. */
  readonly at: string
  readonly endsAtMs: number
}
