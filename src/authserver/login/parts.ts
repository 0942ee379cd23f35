import type { Claims, Clock, Log, Metrics } from '../../core/index.ts'
import type { Addresses } from '../addresses.ts'
import type { Audit } from '../deps.ts'
import type { ClientDirectory } from '../clients/directory.ts'
import type { ResourceNames } from '../resource-names.ts'
import type { ClaimsRequests } from '../sessions/claims-requests.ts'
import type { Codes } from '../tokens/codes.ts'
import type { Upstream } from '../../upstreams/index.ts'
import type { PendingLogins } from './pending.ts'
import type { StoredConsents } from './stored-consents.ts'
import type { Tickets } from './tickets.ts'

/** Shared dependencies of the login steps. */
export interface LoginParts {
  readonly addresses: Addresses
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly audit: Audit
  readonly clients: ClientDirectory
  readonly resources: ResourceNames
  /** By name. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly pending: PendingLogins
  readonly claimsRequests: Pick<ClaimsRequests, 'take'>
  readonly tickets: Tickets
  readonly consents: StoredConsents
  readonly codes: Codes
  /** Whether the session of a login was revoked. Throws `store_unavailable`. */
  readonly isEnded: (tsid: string) => boolean
}

/** The browser's part of a request. */
export interface Visit {
  readonly requestId: string
  readonly cookies: ReadonlyMap<string, string>
}

/** The name of a user to show; undefined without one. */
export const displayNameOf = ({ name, email, preferred_username: userName }: Claims): string | undefined =>
  [name, email, userName].find((one): one is string => typeof one === 'string' && one !== '')

/** Login outcomes for metrics; nothing per user. */
export type LoginOutcome = 'completed' | 'cancelled' | 'failed' | 'lost'

/** Counts how logins end. */
export const loginCounter = (metrics: Metrics): ((outcome: LoginOutcome) => void) => {
  const logins = metrics.counter('extauth_authserver_logins_total', 'Finished logins, by outcome.', ['outcome'])
  return (outcome) => logins.with(outcome).add()
}
