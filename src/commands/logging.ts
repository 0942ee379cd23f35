import { pino } from 'pino'
import type { Log } from '../core/index.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** A log and the way to get its last lines out before the process ends. */
export interface OpenLog extends Log {
  flush(): void
}

/** Lines are collected up to this many bytes before they are written; `FLUSH_MS` bounds how long they wait. */
const BUFFER_BYTES = 8192
const FLUSH_MS = 250

/**
 * JSON lines on `fd` (default 2, standard error). Writing is synchronous, so nothing is lost at exit, and batched, so that a
 * busy proxy does not pay one system call per request; warnings and errors go out at once.
 */
export function openLog(options: { level: LogLevel; fd?: number }): OpenLog {
  const destination = pino.destination({ fd: options.fd ?? 2, sync: true, minLength: BUFFER_BYTES })
  // A reader that has gone (`| head`) must not bring the proxy down.
  destination.on('error', () => undefined)
  const logger = pino({ level: options.level, base: null, timestamp: () => `,"time":${Date.now()}` }, destination)
  const flush = (): void => {
    try {
      destination.flushSync()
    } catch {
      // A pipe that is full or closed: the lines stay buffered for the next flush or are lost with their reader.
    }
  }
  // Not `flushSync`, which also waits until the disk has it.
  setInterval(() => destination.flush(), FLUSH_MS).unref()
  // Every request has its line, and pino takes 2 to 5 µs for one (ADR 0007); the line is the one that pino would write.
  const info = (fields: object, message: string): void => {
    const line = renderLine(pino.levels.values['info'] ?? 30, fields, message)
    if (line === undefined) logger.info(fields, message)
    else destination.write(line)
  }
  const atOnce =
    (write: (fields: object, message: string) => void) =>
    (fields: object, message: string): void => {
      write(fields, message)
      flush()
    }
  return {
    debug: logger.debug.bind(logger),
    info: logger.isLevelEnabled('info') ? info : () => undefined,
    warn: atOnce(logger.warn.bind(logger)),
    error: atOnce(logger.error.bind(logger)),
    flush,
  }
}

/** A log line as pino writes it for plain data; undefined for what only pino can write (cycles, BigInt). */
export function renderLine(
  level: number,
  fields: object,
  message: string,
  nowMs: number = Date.now(),
): string | undefined {
  try {
    const body = JSON.stringify(fields).slice(1, -1)
    return `{"level":${level},"time":${nowMs},${body}${body === '' ? '' : ','}"msg":${JSON.stringify(message)}}\n`
  } catch {
    return undefined
  }
}
