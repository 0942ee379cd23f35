import type { ClientRequest, ClientResponse } from '../core/index.ts'
import type { RequestKind } from './request-kind.ts'

/** Requests of one connection that may be unanswered before it is read no further. */
export const MAX_UNANSWERED = 16
/** Most that may come with one packet; the parser can't be stopped in the middle of it. More ends the connection. */
export const MAX_IN_ONE_PACKET = 256

/** A request that waits for the answer before it to go out. */
export interface Waiting {
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly kind: RequestKind
}
