import type { Clock, EpochMs } from '../../core/index.ts'
import { StoreError, type Seal } from '../../storage/index.ts'
import { LOGIN_MS } from '../lifespans.ts'
import type { LoginRequest } from './login-request.ts'

/**
 * A login request carried by the browser: from `authorize` to the page on the callback's origin (`handover`), or in
 * the form of the consent page (`consent`), there bound to the browser's cookie. Sealed, so it can't be forged.
 * Nothing is stored, so requests without a user cost no memory.
 */
export interface Ticket {
  readonly request: LoginRequest
  readonly expiresAtMs: EpochMs
  /** For `consent`: the number of the flow and the digest of its secret. */
  readonly flow: { readonly id: string; readonly digest: string } | undefined
}

export type TicketKind = 'handover' | 'consent'

export interface Tickets {
  /** Valid for ten minutes. */
  write(kind: TicketKind, request: LoginRequest, flow?: { readonly id: string; readonly digest: string }): string
  /** Undefined for another kind, or an expired ticket. */
  read(kind: TicketKind, text: string): Promise<Ticket | undefined>
}

const MOST_TEXT = 16 * 1024

export function createTickets(seal: Seal, clock: Clock): Tickets {
  const nameOf = (kind: TicketKind): string => `ticket:${kind}`
  return {
    write(kind, request, flow) {
      const ticket: Ticket = { request, expiresAtMs: clock.now() + LOGIN_MS, flow }
      return seal.seal(nameOf(kind), Buffer.from(JSON.stringify(ticket))).toString('base64url')
    },
    async read(kind, text) {
      if (text.length > MOST_TEXT || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined
      try {
        const opened = await seal.open(nameOf(kind), Buffer.from(text, 'base64url'))
        if (opened === undefined) return undefined
        const ticket = JSON.parse(opened.plain.toString('utf8')) as Ticket
        return clock.now() < ticket.expiresAtMs ? ticket : undefined
      } catch (error) {
        if (error instanceof StoreError) return undefined
        throw error
      }
    },
  }
}
