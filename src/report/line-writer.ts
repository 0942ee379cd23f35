import { constants, fstatSync, openSync, writeSync } from 'node:fs'
import { after, monotonicNow } from '../core/index.ts'

/** Lines are batched up to this many characters, for at most `FLUSH_MS`. */
const BATCH_CHARACTERS = 32 * 1024
const FLUSH_MS = 250
/** Characters buffered while the reader is blocked; further lines are dropped. */
const WAITING_CHARACTERS = 1024 * 1024
/** Retry interval for a blocked reader, and the limit at exit, in milliseconds. */
const RETRY_MS = 20
const LAST_WAIT_MS = 500

const NOTHING = Buffer.alloc(0)
const NEWLINE = 0x0a

export interface LineWriterOptions {
  /** Renders the line that reports dropped lines. */
  readonly renderLost: (lines: number) => string
  /** Called when lines are dropped. */
  readonly onLost: (lines: number) => void
}

/**
 * Writes lines to a file descriptor without blocking, one system call per batch. Buffers up to a limit while the
 * reader is blocked; drops lines if the reader is gone (EPIPE).
 */
export class LineWriter {
  readonly #fd: number
  readonly #options: LineWriterOptions
  /** Not yet written. */
  #lines = ''
  /** Rest of a partial write. */
  #partial = NOTHING
  #isBlocked = false
  /** Batch size in characters. */
  #batchSize = BATCH_CHARACTERS
  #unreported = 0
  #timer: NodeJS.Timeout | undefined = undefined

  constructor(fd: number, options: LineWriterOptions) {
    this.#fd = withoutWaiting(fd)
    this.#options = options
    finishAtExit(this)
  }

  /** Adds one line, which ends with a newline. */
  write(line: string): void {
    if (this.#isBlocked && this.#lines.length + line.length > WAITING_CHARACTERS) return this.#lose(1)
    this.#lines += line
    if (this.#lines.length >= this.#batchSize) this.#drain()
    else this.#wake(FLUSH_MS)
  }

  /** Writes buffered lines as far as possible. Does nothing while a retry is scheduled. */
  flush(): void {
    if (!this.#isBlocked) this.#drain()
  }

  /** Writes buffered lines before exit; waits for a blocked reader for a limited time. */
  finish(): void {
    const endMs = after(monotonicNow(), LAST_WAIT_MS)
    this.#drain()
    while (this.#isBlocked && monotonicNow() < endMs) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
      this.#drain()
    }
    if (this.#isBlocked) this.#drop()
  }

  #drain(): void {
    this.#isBlocked = false
    this.#batchSize = BATCH_CHARACTERS
    while (this.#partial.length > 0 || this.#lines !== '') {
      if (this.#partial.length === 0) {
        this.#partial = Buffer.from(this.#lines)
        this.#lines = ''
      }
      try {
        this.#partial = this.#partial.subarray(writeSync(this.#fd, this.#partial))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return this.#block()
        this.#drop()
        return
      }
      if (this.#unreported > 0 && this.#partial.length === 0) this.#report()
    }
  }

  #block(): void {
    this.#isBlocked = true
    this.#batchSize = this.#lines.length + BATCH_CHARACTERS
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#wake(RETRY_MS)
  }

  /** The reader is gone or the disk is full: buffered lines are lost. */
  #drop(): void {
    this.#isBlocked = false
    let lines = 0
    const dropped = Buffer.concat([this.#partial, Buffer.from(this.#lines)])
    for (let at = dropped.indexOf(NEWLINE); at !== -1; at = dropped.indexOf(NEWLINE, at + 1)) lines++
    this.#partial = NOTHING
    this.#lines = ''
    this.#lose(lines)
  }

  #lose(lines: number): void {
    this.#unreported += lines
    this.#options.onLost(lines)
  }

  #report(): void {
    const lines = this.#unreported
    this.#unreported = 0
    this.#lines = this.#options.renderLost(lines) + this.#lines
  }

  #wake(afterMs: number): void {
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#drain()
    }, afterMs)
    this.#timer.unref()
  }
}

/**
 * A non-blocking descriptor. Pipes and terminals are reopened, because the flag would affect all processes that share
 * the old one. Files do not block for long, and Node sets the flag on sockets.
 */
function withoutWaiting(fd: number): number {
  const stat = fstatSync(fd)
  if (!stat.isFIFO() && !stat.isCharacterDevice()) return sharedByNode(fd)
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    // A pipe of another user, no reader, or no /proc.
    return sharedByNode(fd)
  }
}

/** On first use, Node makes standard error non-blocking if it is a pipe or socket. */
function sharedByNode(fd: number): number {
  return fd === 2 ? process.stderr.fd : fd
}

const writers = new Set<LineWriter>()

/** Writes the last lines at every exit except SIGKILL. */
function finishAtExit(writer: LineWriter): void {
  if (writers.size === 0)
    process.once('exit', () => {
      for (const one of writers) one.finish()
    })
  writers.add(writer)
}
