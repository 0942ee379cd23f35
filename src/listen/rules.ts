import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Failure, Log } from '../core/index.ts'
import type { TrustedProxies } from './client.ts'
import type { Connection } from './connection.ts'
import type { Refusal } from './refusal.ts'
import type { Patience, StuckReason } from './stuck.ts'

/** How a request came to us. */
export interface RequestKind {
  /** The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  readonly isUpgrade: boolean
}

/** What all connections of one listener have in common. */
export interface ConnectionRules<T> {
  readonly log: Log
  readonly isSecure: boolean
  /** Plain TCP: the only connections that can be reset. */
  readonly canReset: boolean
  readonly trustedProxies: TrustedProxies | undefined
  readonly patience: Patience
  serve(request: IncomingMessage, response: ServerResponse, connection: Connection<T>, kind: RequestKind): void
  refusal(failure: Failure, served: T | undefined): Refusal
  onCut(reason: StuckReason): void
}
