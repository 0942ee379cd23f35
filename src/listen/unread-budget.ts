import type { Log, Metrics } from '../core/index.ts'
import { networkOf } from '../http/index.ts'

/** A connection, as far as it matters who reads. */
export interface Reader {
  /** What of an answer waits for the client, in bytes. */
  readonly unreadBytes: number
  /** Since when something has waited without a break, in milliseconds; 0 while nobody has looked. */
  readonly unreadSinceMs: number
  /** Address of the client whose answer waits. */
  readonly clientAddress: string
  cut(reason: 'crowded'): void
}

/** It is over when so many looks in a row found nothing to cut: who is cut comes again. */
const CALM_LOOKS = 40

/**
 * Memory for answers that wait for their clients, of all connections of a listener together. Over the limit, the client
 * that holds most loses connections first (IPv6: its /64), the one that has waited longest before the others, until what is
 * left fits: many slow readers cost nobody else an answer.
 */
export class UnreadBudget {
  readonly #limitBytes: number
  readonly #log: Log
  readonly #held: { set(value: number): void } | undefined
  #cut = 0
  #calm = 0

  constructor(limitBytes: number, log: Log, metrics: Metrics | undefined) {
    this.#limitBytes = limitBytes
    this.#log = log
    this.#held = metrics
      ?.gauge('extauth_unread_answer_bytes', 'Bytes of answers that wait for clients to read them.')
      .with()
  }

  /** To be called often: cuts what is too much. */
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
    if (this.#cut === 0 || this.#calm < CALM_LOOKS) return
    this.#log.info({ cut: this.#cut }, 'answers that wait for clients fit again')
    this.#cut = 0
  }

  #relieve(waiting: readonly Reader[], atFirst: number): number {
    const holders = byClient(waiting)
    if (this.#cut === 0)
      this.#log.warn(
        { heldBytes: atFirst, limitBytes: this.#limitBytes, clients: holders.length },
        'clients do not read their answers: connections of those that hold most are cut',
      )
    const share = fairShare(holders, this.#limitBytes)
    let heldBytes = atFirst
    for (const holder of holders)
      while (heldBytes > this.#limitBytes && holder.bytes > share) {
        const victim = holder.readers.pop()
        if (victim === undefined) break
        heldBytes -= victim.unreadBytes
        holder.bytes -= victim.unreadBytes
        victim.cut('crowded')
        this.#cut++
      }
    return heldBytes
  }
}

interface Holder {
  readonly readers: Reader[]
  bytes: number
}

/** Who holds most comes first; of its connections the one that has waited longest is the last. */
function byClient(waiting: readonly Reader[]): Holder[] {
  const clients = new Map<string, Holder>()
  for (const reader of waiting) {
    const network = networkOf(reader.clientAddress)
    const holder = clients.get(network) ?? { readers: [], bytes: 0 }
    clients.set(network, holder)
    holder.readers.push(reader)
    holder.bytes += reader.unreadBytes
  }
  // One that nobody has looked at yet has just begun.
  const since = ({ unreadSinceMs }: Reader): number => unreadSinceMs || Number.POSITIVE_INFINITY
  for (const { readers } of clients.values()) readers.sort((one, other) => compare(since(other), since(one)))
  return [...clients.values()].toSorted((one, other) => other.bytes - one.bytes)
}

const compare = (one: number, other: number): number => (one === other ? 0 : one < other ? -1 : 1)

/** What each may hold so that all together hold `limitBytes`: those that want less leave the rest to the others. */
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
