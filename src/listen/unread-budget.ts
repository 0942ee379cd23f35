import type { Log, Metrics } from '../core/index.ts'
import { networkOf } from '../http/index.ts'

/** A connection with an unread response. */
export interface Reader {
  /** Bytes of a response that wait for the client. */
  readonly unreadBytes: number
  /** Start of the uninterrupted wait in milliseconds; 0 before the first check. */
  readonly unreadSinceMs: number
  /** Address of the client with the unread response. */
  readonly clientAddress: string
  abort(reason: 'crowded'): void
}

/** Consecutive checks below the limit that end an overload: disconnected clients come back. */
const CALM_LOOKS = 40

/**
 * Memory budget for unread responses, all connections of a listener together. Over the limit, the client with the
 * most bytes (IPv6: its /64) loses connections first, longest waiting first, until the rest fits: many slow readers
 * do not affect other clients.
 */
export class UnreadBudget {
  readonly #limitBytes: number
  readonly #log: Log
  readonly #held: { set(value: number): void } | undefined
  #aborted = 0
  #calm = 0

  constructor(limitBytes: number, log: Log, metrics: Metrics | undefined) {
    this.#limitBytes = limitBytes
    this.#log = log
    this.#held = metrics
      ?.gauge('extauth_unread_answer_bytes', 'Bytes of answers that wait for clients to read them.')
      .with()
  }

  /** Called frequently: aborts connections over the limit. */
  look(readers: Iterable<Reader>): void {
    const waiting: Reader[] = []
    let heldBytes = 0
    for (const reader of readers) {
      const { unreadBytes } = reader
      if (unreadBytes === 0) continue
      waiting.push(reader)
      heldBytes += unreadBytes
    }
    const isCrowded = heldBytes > this.#limitBytes
    if (isCrowded) heldBytes = this.#relieve(waiting, heldBytes)
    this.#held?.set(heldBytes)
    this.#calm = isCrowded ? 0 : this.#calm + 1
    if (this.#aborted === 0 || this.#calm < CALM_LOOKS) return
    this.#log.info({ cut: this.#aborted }, 'unread responses below the memory limit again')
    this.#aborted = 0
  }

  #relieve(waiting: readonly Reader[], atFirst: number): number {
    const holders = byClient(waiting)
    if (this.#aborted === 0)
      this.#log.warn(
        { heldBytes: atFirst, limitBytes: this.#limitBytes, clients: holders.length },
        'unread responses exceed the memory limit, aborting connections of the largest clients',
      )
    const share = fairShare(holders, this.#limitBytes)
    let heldBytes = atFirst
    for (const holder of holders)
      while (heldBytes > this.#limitBytes && holder.bytes > share) {
        const victim = holder.readers.pop()
        if (victim === undefined) break
        heldBytes -= victim.unreadBytes
        holder.bytes -= victim.unreadBytes
        victim.abort('crowded')
        this.#aborted++
      }
    return heldBytes
  }
}

interface Holder {
  readonly readers: Reader[]
  bytes: number
}

/** Clients by bytes, most first; the longest waiting connection of each is last. */
function byClient(waiting: readonly Reader[]): Holder[] {
  const clients = new Map<string, Holder>()
  for (const reader of waiting) {
    const network = networkOf(reader.clientAddress)
    const holder = clients.get(network) ?? { readers: [], bytes: 0 }
    clients.set(network, holder)
    holder.readers.push(reader)
    holder.bytes += reader.unreadBytes
  }
  // A connection without a check has just started to wait.
  const since = ({ unreadSinceMs }: Reader): number => unreadSinceMs || Number.POSITIVE_INFINITY
  for (const { readers } of clients.values()) readers.sort((one, other) => compare(since(other), since(one)))
  return [...clients.values()].toSorted((one, other) => other.bytes - one.bytes)
}

const compare = (one: number, other: number): number => (one === other ? 0 : one < other ? -1 : 1)

/** The share of each client so that the total is `limitBytes`: clients below their share leave the rest to others. */
function fairShare(holders: readonly Holder[], limitBytes: number): number {
  let rest = limitBytes
  let others = holders.length
  for (const { bytes } of holders.toReversed()) {
    if (bytes > rest / others) return rest / others
    rest -= bytes
    others--
  }
  return Number.POSITIVE_INFINITY
}
