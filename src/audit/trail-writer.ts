import { causeOf, Failure, type Log, type Metrics } from '../core/index.ts'
import { TrailFile, WriteError } from './trail-file.ts'

/** Milliseconds that a line waits for others, unless a request waits for it. */
const FLUSH_MS = 100
/** Bytes of a batch. */
const BATCH_BYTES = 256 * 1024
/** Bytes of lines that are not written yet; further lines are lost. */
const WAITING_BYTES = 4 * 1024 * 1024
/** Milliseconds between attempts after a failure, where lines are kept. */
const RETRY_MS = 200
/** Milliseconds that a request waits for its line. */
const WAIT_MS = 5_000
/** Milliseconds that it waits longer for a write that has its line. */
const LATE_MS = 1_000
/** Milliseconds for the last lines at the end. */
const CLOSE_MS = 5_000

interface Entry {
  data: Buffer
  /** In a write, which can't be canceled. */
  isTaken: boolean
  /** Its response waits no longer: it is not written after a failure. */
  isLate: boolean
  readonly settle: ((written: Written) => void) | undefined
}

/** `refused`: the line is not and will not be written. `unknown`: a write of it hangs. */
export type Written = 'written' | 'refused' | 'unknown'

export interface TrailWriterOptions {
  /** Absolute; undefined: standard output. */
  readonly path: string | undefined
  readonly whenFull: 'drop' | 'block'
  readonly log: Log
  readonly metrics: Metrics
  /** Milliseconds that a request waits for its line. Default 5 s. */
  readonly waitMs?: number
}

/** Writes lines in batches, one write at a time, with a bounded queue. */
export class TrailWriter {
  readonly #file: TrailFile
  readonly #options: TrailWriterOptions
  readonly #waitMs: number
  readonly #lines: { add(by?: number): void }
  readonly #lost: { add(by?: number): void }
  #queue: Entry[] = []
  #queuedBytes = 0
  #isWriting = false
  #wantsReopen = false
  #isClosed = false
  #isFailing = false
  #timer: NodeJS.Timeout | undefined
  #onRecovered: (() => void)[] = []
  #onIdle: (() => void)[] = []

  /** Opens the file. Throws `config_error`. */
  constructor(options: TrailWriterOptions) {
    this.#options = options
    this.#waitMs = options.waitMs ?? WAIT_MS
    this.#file = new TrailFile(options.path, options.log)
    const { metrics } = options
    this.#lines = metrics.counter('extauth_audit_events_total', 'Audit events written.').with()
    this.#lost = metrics.counter('extauth_audit_events_lost_total', 'Audit events that could not be written.').with()
  }

  /** Adds a line, which ends with a newline. */
  add(line: string): void {
    this.#push({ data: Buffer.from(line), isTaken: false, isLate: false, settle: undefined })
  }

  /** Adds a line that a response waits for. */
  written(line: string): Promise<Written> {
    const { promise, resolve } = Promise.withResolvers<Written>()
    const entry: Entry = {
      data: Buffer.from(line),
      isTaken: false,
      isLate: false,
      settle(written) {
        clearTimeout(timer)
        resolve(written)
      },
    }
    let timer = setTimeout(() => {
      if (!entry.isTaken) return this.#cancel(entry)
      // The write that has it decides, unless it hangs.
      entry.isLate = true
      timer = setTimeout(() => resolve('unknown'), LATE_MS)
    }, this.#waitMs)
    this.#push(entry)
    return promise
  }

  /** Undefined while lines can be written; else resolves when they can, and rejects with `audit_unavailable` after the deadline. */
  ready(): Promise<void> | undefined {
    if (!this.#isFailing && this.#queuedBytes < WAITING_BYTES) return undefined
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#onRecovered = this.#onRecovered.filter((one) => one !== recovered)
      reject(unavailable())
    }, this.#waitMs)
    const recovered = (): void => {
      clearTimeout(timer)
      resolve()
    }
    this.#onRecovered.push(recovered)
    return promise
  }

  /** Opens the file again if its path names another one. */
  reopen(): void {
    if (this.#isWriting) this.#wantsReopen = true
    else this.#file.reopen()
  }

  /** Writes the last lines, for at most five seconds. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    if (this.#isWriting || this.#queue.length > 0) {
      let timer: NodeJS.Timeout | undefined
      const idle = new Promise<void>((resolve) => this.#onIdle.push(resolve))
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
      this.#wake(0)
      await Promise.race([idle, late])
      clearTimeout(timer)
    }
    clearTimeout(this.#timer)
    for (const { settle } of this.#queue) settle?.('refused')
    if (this.#queue.length > 0) this.#lose(this.#queue.length)
    this.#queue = []
    // A write that hangs still uses the descriptor.
    if (!this.#isWriting) this.#file.close()
  }

  #push(entry: Entry): void {
    if (this.#queuedBytes + entry.data.length > WAITING_BYTES) {
      this.#lose(1)
      entry.settle?.('refused')
      return
    }
    this.#queue.push(entry)
    this.#queuedBytes += entry.data.length
    if (this.#isFailing && this.#options.whenFull === 'block') return
    if (entry.settle !== undefined || this.#queuedBytes >= BATCH_BYTES) this.#wake(0)
    else this.#wake(FLUSH_MS)
  }

  #cancel(entry: Entry): void {
    const kept = this.#queue.filter((one) => one !== entry)
    if (kept.length < this.#queue.length) this.#queuedBytes -= entry.data.length
    this.#queue = kept
    entry.settle?.('refused')
  }

  #isSoon = false

  #wake(afterMs: number): void {
    if (this.#isWriting) return
    if (afterMs === 0) {
      if (this.#isSoon) return
      this.#isSoon = true
      // Lines of the same turn share a write.
      setImmediate(() => {
        this.#isSoon = false
        this.#drain()
      })
      return
    }
    this.#timer ??= setTimeout(() => this.#drain(), afterMs)
  }

  #drain(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isWriting) return
    this.#isWriting = true
    void this.#writeAll().finally(() => {
      this.#isWriting = false
      if (this.#wantsReopen) {
        this.#wantsReopen = false
        this.#file.reopen()
      }
      if (this.#queue.length === 0 || (this.#isClosed && this.#options.whenFull === 'drop')) {
        for (const idle of this.#onIdle.splice(0)) idle()
      } else this.#wake(RETRY_MS)
    })
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#batch()
      const bytes = batch.length === 1 && batch[0] !== undefined ? batch[0].data : joined(batch)
      try {
        await this.#file.append(bytes)
        this.#settle(batch)
        this.#recovered()
      } catch (error) {
        const done = error instanceof WriteError ? error.bytes : 0
        this.#failed(error, batch, done)
        return
      }
    }
  }

  #batch(): readonly Entry[] {
    let bytes = 0
    let count = 0
    for (const { data } of this.#queue) {
      if (count > 0 && bytes + data.length > BATCH_BYTES) break
      bytes += data.length
      count += 1
    }
    const batch = this.#queue.splice(0, count)
    for (const entry of batch) entry.isTaken = true
    return batch
  }

  #settle(entries: readonly Entry[]): void {
    for (const { data, settle } of entries) {
      this.#queuedBytes -= data.length
      settle?.('written')
    }
    this.#lines.add(entries.length)
  }

  #failed(error: unknown, batch: readonly Entry[], doneBytes: number): void {
    let bytes = 0
    let count = 0
    for (const { data } of batch) {
      if (bytes + data.length > doneBytes) break
      bytes += data.length
      count += 1
    }
    this.#settle(batch.slice(0, count))
    const rest = batch.slice(count)
    const [first] = rest
    const torn = doneBytes - bytes
    if (torn > 0 && first !== undefined) {
      // Its beginning can't be taken back, so that the rest follows.
      first.data = first.data.subarray(torn)
      this.#queuedBytes -= torn
    }
    const kept = this.#options.whenFull === 'block' ? rest : rest.slice(0, torn > 0 ? 1 : 0)
    const lost = rest.slice(kept.length)
    for (const { data } of lost) this.#queuedBytes -= data.length
    if (lost.length > 0) this.#lose(lost.length)
    for (const [index, entry] of kept.entries()) entry.isTaken = index === 0 && torn > 0
    this.#queue = [...kept, ...this.#queue]
    for (const entry of kept) if (entry.isLate && !entry.isTaken) this.#cancel(entry)
    if (!this.#isFailing) {
      const cause = error instanceof WriteError ? error.cause : error
      this.#options.log.error({ cause: causeOf(cause) }, 'audit trail cannot be written')
    }
    this.#isFailing = true
  }

  #recovered(): void {
    if (this.#isFailing) {
      this.#isFailing = false
      this.#options.log.info({}, 'audit trail can be written again')
    }
    if (this.#onRecovered.length > 0 && this.#queuedBytes < WAITING_BYTES)
      for (const recovered of this.#onRecovered.splice(0)) recovered()
  }

  #lose(lines: number): void {
    this.#lost.add(lines)
  }
}

export const unavailable = (): Failure => new Failure('audit_unavailable', { retryAfterSeconds: 5 })

function joined(batch: readonly Entry[]): Buffer {
  return Buffer.concat(batch.map(({ data }) => data))
}
