/** Single events of refused tokens per address and second; further ones are summarized. */
const SINGLE = 10
const SECOND_MS = 1_000
/** Addresses that are counted; further ones share one summary. */
const MAX_ADDRESSES = 4_096

/** 401s of one address in one second that have no event of their own. */
export interface RefusalSummary {
  /** Undefined: of many addresses. */
  readonly client: string | undefined
  readonly repeated: number
  readonly firstAtMs: number
  readonly lastAtMs: number
}

interface Count {
  seen: number
  firstAtMs: number
  lastAtMs: number
}

/** Counts the 401s of each address, and reports those after the first ten of a second once the second is over. */
export class RefusalSummaries {
  readonly #report: (summary: RefusalSummary) => void
  readonly #counts = new Map<string | undefined, Count>()
  #timer: NodeJS.Timeout | undefined
  #sinceMs = 0

  constructor(report: (summary: RefusalSummary) => void) {
    this.#report = report
  }

  /** Whether a 401 of this address gets an event of its own. */
  isSingle(address: string, nowMs: number): boolean {
    if (nowMs - this.#sinceMs >= SECOND_MS || nowMs < this.#sinceMs) {
      this.flush()
      this.#sinceMs = nowMs
    }
    const key = this.#counts.has(address) || this.#counts.size < MAX_ADDRESSES ? address : undefined
    const count = this.#counts.get(key)
    if (count === undefined) {
      this.#counts.set(key, { seen: 1, firstAtMs: nowMs, lastAtMs: nowMs })
      return true
    }
    count.seen += 1
    if (count.seen <= SINGLE) return true
    if (count.seen === SINGLE + 1) count.firstAtMs = nowMs
    count.lastAtMs = nowMs
    this.#timer ??= setTimeout(() => this.flush(), SECOND_MS)
    return false
  }

  /** Reports what is not reported yet. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const [client, { seen, firstAtMs, lastAtMs }] of this.#counts)
      if (seen > SINGLE) this.#report({ client, repeated: seen - SINGLE, firstAtMs, lastAtMs })
    this.#counts.clear()
  }
}
