import { constants, fstatSync, openSync, writeSync } from 'node:fs'

/** Lines are collected up to this many characters before they are written; `FLUSH_MS` bounds how long they wait. */
const BATCH_CHARACTERS = 32 * 1024
const FLUSH_MS = 250
/** Characters that wait while the reader does not read; lines beyond are lost. */
const WAITING_CHARACTERS = 1024 * 1024
/** How often a reader that does not read is tried again, and for how long at the very end, in milliseconds. */
const RETRY_MS = 20
const LAST_WAIT_MS = 500

const NOTHING = Buffer.alloc(0)
const NEWLINE = 0x0a

export interface LineWriterOptions {
  /** The line that says, when lines can be written again, how many were not. */
  readonly renderLost: (lines: number) => string
  /** Called whenever lines are lost. */
  readonly onLost: (lines: number) => void
}

/**
 * Lines to a file descriptor, each batch with one system call that never waits: a reader that does not read costs lines
 * and not the process. What cannot be written waits, up to a bound; what has nobody to read it (EPIPE) is dropped.
 */
export class LineWriter {
  readonly #fd: number
  readonly #options: LineWriterOptions
  /** Not tried yet. */
  #lines = ''
  /** What the last write left over. */
  #rest = NOTHING
  #isBlocked = false
  /** So many characters in `#lines` are worth a system call. */
  #worthTrying = BATCH_CHARACTERS
  #unreported = 0
  #timer: NodeJS.Timeout | undefined = undefined

  constructor(fd: number, options: LineWriterOptions) {
    this.#fd = withoutWaiting(fd)
    this.#options = options
    finishAtExit(this)
  }

  /** Takes one line, with its newline. */
  write(line: string): void {
    if (this.#isBlocked && this.#lines.length + line.length > WAITING_CHARACTERS) return this.#lose(1)
    this.#lines += line
    if (this.#lines.length >= this.#worthTrying) this.#drain()
    else this.#wake(FLUSH_MS)
  }

  /** Writes what is there, as far as it is taken; does nothing while a retry is due. */
  flush(): void {
    if (!this.#isBlocked) this.#drain()
  }

  /** Writes what is left before the process ends; a reader that does not read is waited for, but not for long. */
  finish(): void {
    const endMs = performance.now() + LAST_WAIT_MS
    this.#drain()
    while (this.#isBlocked && performance.now() < endMs) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
      this.#drain()
    }
    if (this.#isBlocked) this.#drop()
  }

  #drain(): void {
    this.#isBlocked = false
    this.#worthTrying = BATCH_CHARACTERS
    while (this.#rest.length > 0 || this.#lines !== '') {
      if (this.#rest.length === 0) {
        this.#rest = Buffer.from(this.#lines)
        this.#lines = ''
      }
      try {
        this.#rest = this.#rest.subarray(writeSync(this.#fd, this.#rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return this.#block()
        this.#drop()
        return
      }
      if (this.#unreported > 0 && this.#rest.length === 0) this.#report()
    }
  }

  #block(): void {
    this.#isBlocked = true
    this.#worthTrying = this.#lines.length + BATCH_CHARACTERS
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#wake(RETRY_MS)
  }

  /** The reader has gone, or the disk is full: nothing of this will ever be read. */
  #drop(): void {
    this.#isBlocked = false
    let lines = 0
    const dropped = Buffer.concat([this.#rest, Buffer.from(this.#lines)])
    for (let at = dropped.indexOf(NEWLINE); at !== -1; at = dropped.indexOf(NEWLINE, at + 1)) lines++
    this.#rest = NOTHING
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
 * A descriptor whose writes never wait. Pipes and terminals are opened anew for that, because the flag would hold for
 * everybody who shares the old one; a file never makes anybody wait for long, and Node has set the flag on sockets by itself.
 */
function withoutWaiting(fd: number): number {
  const stat = fstatSync(fd)
  if (!stat.isFIFO() && !stat.isCharacterDevice()) return sharedByNode(fd)
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    // Somebody else's pipe, no reader, or no /proc.
    return sharedByNode(fd)
  }
}

/** Node makes standard error non-blocking, where it is a pipe or a socket, when it is first asked for. */
function sharedByNode(fd: number): number {
  return fd === 2 ? process.stderr.fd : fd
}

const writers = new Set<LineWriter>()

/** However the process ends, unless it is killed, its last lines say why. */
function finishAtExit(writer: LineWriter): void {
  if (writers.size === 0)
    process.once('exit', () => {
      for (const one of writers) one.finish()
    })
  writers.add(writer)
}
