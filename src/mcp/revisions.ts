/** A revision of the protocol, and what is different in it. */
export interface Revision {
  /** As it is written in messages and headers. */
  readonly date: string
  /** `initialize` opens a session, or each request stands alone and says its revision itself. */
  readonly era: 'handshake' | 'stateless'
  /** Several messages may come in one JSON array. */
  readonly hasBatches: boolean
  /** `sse`: messages go to an address that a stream names first; `http`: streamable HTTP. */
  readonly transport: 'sse' | 'http'
}

const revision = (date: string, era: Revision['era'], more: Partial<Revision> = {}): Revision => ({
  date,
  era,
  hasBatches: false,
  transport: 'http',
  ...more,
})

/** Every revision of MCP, oldest first. */
export const REVISIONS = [
  revision('2024-11-05', 'handshake', { transport: 'sse' }),
  revision('2025-03-26', 'handshake', { hasBatches: true }),
  revision('2025-06-18', 'handshake'),
  revision('2025-11-25', 'handshake'),
  revision('2026-07-28', 'stateless'),
] as const satisfies readonly Revision[]

const newest = (era: Revision['era']): string => REVISIONS.findLast((each) => each.era === era)?.date ?? ''

/** The newest revision with a handshake: what an `initialize` of ours asks for. */
export const HANDSHAKE_REVISION = newest('handshake')

/** The newest revision without. */
export const STATELESS_REVISION = newest('stateless')

/** The row of a date; undefined for what is no revision that is known here. */
export const revisionOf = (date: unknown): Revision | undefined => REVISIONS.find((each) => each.date === date)
