import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  write as writeCallback,
} from 'node:fs'
import { promisify } from 'node:util'
import { causeOf, Failure, type Log } from '../core/index.ts'

const write = promisify(writeCallback)

const NEWLINE = 0x0a
/** Milliseconds between attempts at a reader that does not read. */
const RETRY_MS = 20
/** Milliseconds between checks whether the path names another file. */
const LOOK_EVERY_MS = 1_000
/** Bytes searched for the last newline of an existing file: more than any line. */
const TAIL_BYTES = 64 * 1024

/** A write that failed; `bytes` were written before. */
export class WriteError extends Error {
  readonly bytes: number

  constructor(bytes: number, cause: unknown) {
    super('the audit trail cannot be written', { cause })
    this.bytes = bytes
  }
}

/**
 * The file of an audit trail: appended to, created with mode 0600, opened again when its path names another file. On a
 * regular file a failed write leaves whole lines only.
 */
export class TrailFile {
  readonly #path: string | undefined
  readonly #log: Log
  #fd: number
  #isRegular: boolean
  #lookedAtMs = performance.now()

  /** Opens `path`, or standard output without one. Throws `config_error`. */
  constructor(path: string | undefined, log: Log) {
    this.#path = path
    this.#log = log
    try {
      this.#fd = path === undefined ? 1 : open(path)
      this.#isRegular = fstatSync(this.#fd).isFile() && path !== undefined
      if (this.#isRegular) dropTornLine(this.#fd)
    } catch (cause) {
      throw new Failure('config_error', {
        detail: `audit.file ${path ?? 'stdout'} cannot be opened for writing (${causeOf(cause).code ?? 'error'}), expected a file in an existing directory that the proxy may write`,
        cause,
      })
    }
  }

  /** Appends whole lines. Throws `WriteError`. */
  async append(lines: Buffer): Promise<void> {
    if (performance.now() - this.#lookedAtMs >= LOOK_EVERY_MS) this.reopen()
    let at = 0
    while (at < lines.length) {
      try {
        const { bytesWritten } = await write(this.#fd, lines, at, lines.length - at, null)
        at += bytesWritten
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') await pause(RETRY_MS)
        else throw new WriteError(this.#withoutTornLine(lines, at), error)
      }
    }
  }

  /** Opens the path again if it names another file, such as after a rotation. Not during a write. */
  reopen(): void {
    this.#lookedAtMs = performance.now()
    if (this.#path === undefined) return
    try {
      const own = fstatSync(this.#fd)
      const named = statSync(this.#path, { throwIfNoEntry: false })
      if (named?.ino === own.ino && named.dev === own.dev) return
      const fd = open(this.#path)
      closeSync(this.#fd)
      this.#fd = fd
      this.#isRegular = fstatSync(fd).isFile()
      if (this.#isRegular) dropTornLine(fd)
    } catch (error) {
      this.#log.warn({ cause: causeOf(error) }, 'audit trail cannot be reopened, the previous file is kept')
    }
  }

  close(): void {
    if (this.#path !== undefined) closeSync(this.#fd)
  }

  /** Removes the last line if it was written in part; returns the bytes that remain. */
  #withoutTornLine(lines: Buffer, written: number): number {
    const whole = written === 0 ? 0 : lines.lastIndexOf(NEWLINE, written - 1) + 1
    const torn = lines.subarray(whole, written)
    if (torn.length === 0 || !this.#isRegular) return written
    try {
      const { size } = fstatSync(this.#fd)
      const tail = Buffer.alloc(torn.length)
      // Another process may have appended since.
      if (readSync(this.#fd, tail, 0, tail.length, size - tail.length) !== tail.length || !tail.equals(torn))
        return written
      ftruncateSync(this.#fd, size - torn.length)
      return whole
    } catch {
      return written
    }
  }
}

const APPENDING = constants.O_RDWR | constants.O_APPEND | constants.O_NOCTTY

function open(path: string): number {
  return openSync(path, APPENDING | constants.O_CREAT, 0o600)
}

/** Opens the file as the trail does, without creating or changing it; false if it does not exist. Throws the system's error. */
export function isTrailFile(path: string): boolean {
  try {
    closeSync(openSync(path, APPENDING))
    return true
  } catch (error) {
    if (causeOf(error).code === 'ENOENT') return false
    throw error
  }
}

/** A process that was killed may have left the beginning of a line. */
function dropTornLine(fd: number): void {
  const { size } = fstatSync(fd)
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES))
  if (tail.length === 0) return
  readSync(fd, tail, 0, tail.length, size - tail.length)
  if (tail.at(-1) === NEWLINE) return
  const end = tail.lastIndexOf(NEWLINE) + 1
  // Without a newline it may be another kind of file.
  if (end === 0 && size > tail.length) return
  if (end === 0 && tail[0] !== 0x7b) return
  // Unless another process is writing it now.
  if (fstatSync(fd).size === size) ftruncateSync(fd, size - tail.length + end)
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
