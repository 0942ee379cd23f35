/** A revision of the protocol with its differences. */
export interface Revision {
  /** As written in messages and headers. */
  readonly date: string
  /** `initialize` opens a session, or each request is independent and has its revision. */
  readonly lifecycle: 'handshake' | 'stateless'
  /** Several messages may be in one JSON array. */
  readonly hasBatches: boolean
  /** `sse`: messages go to a URL that a stream sends first; `http`: streamable HTTP. */
  readonly transport: 'sse' | 'http'
}

const revision = (date: string, lifecycle: Revision['lifecycle'], more: Partial<Revision> = {}): Revision => ({
  date,
  lifecycle,
  hasBatches: false,
  transport: 'http',
  ...more,
})

/** All revisions of MCP, oldest first. */
export const REVISIONS = [
  revision('2024-11-05', 'handshake', { transport: 'sse' }),
  revision('2025-03-26', 'handshake', { hasBatches: true }),
  revision('2025-06-18', 'handshake'),
  revision('2025-11-25', 'handshake'),
  revision('2026-07-28', 'stateless'),
] as const satisfies readonly Revision[]

const newest = (lifecycle: Revision['lifecycle']): string =>
  REVISIONS.findLast((each) => each.lifecycle === lifecycle)?.date ?? ''

/** The latest revision with a handshake, requested by `initialize`. */
export const HANDSHAKE_REVISION = newest('handshake')

/** The latest stateless revision. */
export const STATELESS_REVISION = newest('stateless')

/** The revision of a date; undefined if unknown. */
export const revisionOf = (date: unknown): Revision | undefined => REVISIONS.find((each) => each.date === date)
