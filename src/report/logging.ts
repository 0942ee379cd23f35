import type { LogLevel } from './log-level.ts'
import type { Log, Metrics } from '../core/index.ts'
import { renderHumanLine } from './human-line.ts'
import { LineWriter } from './line-writer.ts'

export const LOG_FORMATS = ['human', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** The numbers that readers of pino's lines know. */
const NUMBERS: Readonly<Record<LogLevel, number>> = { debug: 20, info: 30, warn: 40, error: 50, silent: 100 }

/** Says how many lines were lost since the start, and calls back for each further loss. */
export interface LossReport {
  onLost(listener: (lines: number) => void): void
}

/** A log that may be able to say what it lost. */
export type ReportingLog = Log & Partial<LossReport>

/** Counts what `log` loses, from the start of the process. */
export function countLostLines(log: ReportingLog, metrics: Metrics): void {
  const lost = metrics.counter('extauth_log_lines_lost_total', 'Log lines that nobody read.').with()
  log.onLost?.((lines) => lost.add(lines))
}

const AFTER_NEWLINE = /(?<=\n)/

/** A log and the way to get its last lines out before the process ends. */
export interface OpenLog extends Log, LossReport {
  /** Lines that another process has rendered, each with its newline. */
  pass(lines: string): void
  /** Waits up to half a second for a reader that does not read. */
  flush(): void
}

export interface LogOptions {
  readonly level: LogLevel
  /** Default `json`: lines in pino's shape. `human`: lines for people. */
  readonly format?: LogFormat
  /** Whether lines for people are coloured. Default no. */
  readonly colours?: boolean
  /** Process id of a worker, which all of its lines name. Default none. */
  readonly worker?: number
  /** Default 2, standard error. */
  readonly fd?: number
}

/**
 * Log lines on a file descriptor. They are written in batches, so that a busy proxy does not pay one system call per
 * request; warnings and errors go out at once. A reader that has gone or does not read costs lines, never the process.
 */
export function openLog(options: LogOptions): OpenLog {
  const { colours = false, worker } = options
  const renderOwn =
    options.format === 'human'
      ? (level: LogLevel, fields: object, message: string) => renderHumanLine(level, fields, message, { colours })
      : (level: LogLevel, fields: object, message: string) => renderLine(NUMBERS[level], fields, message)
  const render: typeof renderOwn =
    worker === undefined ? renderOwn : (level, fields, message) => renderOwn(level, { ...fields, worker }, message)
  let lost = 0
  let onLost: ((lines: number) => void) | undefined
  const writer = new LineWriter(options.fd ?? 2, {
    renderLost: (lines) => render('warn', { lines }, 'log lines were lost, their reader did not read'),
    onLost: (lines) => {
      lost += lines
      onLost?.(lines)
    },
  })
  const silent = (): void => undefined
  const at = (level: LogLevel, isUrgent: boolean): Log['info'] => {
    if (NUMBERS[level] < NUMBERS[options.level]) return silent
    return (fields, message) => {
      writer.write(render(level, fields, message))
      if (isUrgent) writer.flush()
    }
  }
  return {
    debug: at('debug', false),
    info: at('info', false),
    warn: at('warn', true),
    error: at('error', true),
    pass(lines) {
      for (const line of lines.split(AFTER_NEWLINE)) writer.write(line)
    },
    flush: () => writer.finish(),
    onLost(listener) {
      onLost = listener
      if (lost > 0) listener(lost)
    },
  }
}

/** A log line as pino writes it; fields that JSON cannot hold (cycles, BigInt) are left out. */
export function renderLine(level: number, fields: object, message: string, nowMs: number = Date.now()): string {
  const body = bodyOf(fields)
  return `{"level":${level},"time":${nowMs},${body}${body === '' ? '' : ','}"msg":${JSON.stringify(message)}}\n`
}

function bodyOf(fields: object): string {
  try {
    return JSON.stringify(fields).slice(1, -1)
  } catch {
    const one = Object.entries(fields).map(([name, value]) => memberOf(name, value))
    return one.filter((member) => member !== '').join(',')
  }
}

function memberOf(name: string, value: unknown): string {
  try {
    return JSON.stringify({ [name]: value }).slice(1, -1)
  } catch {
    return ''
  }
}
