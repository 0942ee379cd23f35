import type { AuditNotice, AuditSink } from '../core/index.ts'
import type { ClientNetwork } from '../authserver/index.ts'
import type { Owner } from './owner.ts'

/** An event of connected accounts. It holds no credential and no link. */
export interface ConnectionNotice extends Pick<AuditNotice, 'outcome' | 'requestId' | 'details'> {
  readonly type: Extract<AuditNotice['type'], `account_${string}` | 'connect_refused'>
  /** Undefined if unknown. */
  readonly owner: Owner | undefined
  readonly provider: string | undefined
}

export type ConnectionAudit = (notice: ConnectionNotice) => void

const SUBJECT = 'sub:'

/** Records events in the audit trail, with the address of the client. */
export const createConnectionAudit =
  (sink: AuditSink, network: Pick<ClientNetwork, 'address'>): ConnectionAudit =>
  ({ owner, provider, details, ...notice }) =>
    sink.notice({
      ...notice,
      component: 'connections',
      client: network.address,
      userId: owner?.identity.startsWith(SUBJECT) === true ? owner.identity.slice(SUBJECT.length) : owner?.identity,
      ...(provider === undefined ? {} : { target: { type: 'connection', name: provider } }),
      details: { ...(owner === undefined ? {} : { issuer: owner.issuer }), ...details },
    })
