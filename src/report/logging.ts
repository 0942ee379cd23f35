import type { LogLevel } from './log-level.ts'
import type { EpochMs, Log, Metrics } from '../core/index.ts'
import { renderHumanLine } from './human-line.ts'
import { LineWriter } from './line-writer.ts'

export const LOG_FORMATS = ['human', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** Numeric levels of pino. */
const NUMBERS: Readonly<Record<LogLevel, number>> = { debug: 20, info: 30, warn: 40, error: 50, silent: 100 }

/** Reports dropped lines since the start, and each further loss. */
export interface LossReport {
  onLost(listener: (lines: number) => void): void
}

/** A log that may report its losses. */
export type ReportingLog = Log & Partial<LossReport>

/** Counts dropped lines of `log`, from the start of the process. */
export function countLostLines(log: ReportingLog, metrics: Metrics): void {
  const lost = metrics.counter('extauth_log_lines_lost_total', 'Log lines dropped (stderr blocked or closed).').with()
  log.onLost?.((lines) => lost.add(lines))
}

const AFTER_NEWLINE = /(?<=\n)/

/** A log that can be flushed before exit. */
export interface OpenLog extends Log, LossReport {
  /** Writes lines rendered by another process, each with its newline. */
  pass(lines: string): void
  /** Waits up to half a second for a blocked reader. */
  flush(): void
}

export interface LogOptions {
  readonly level: LogLevel
  /** Default `json`: pino's format. `human`: for people. */
  readonly format?: LogFormat
  /** Whether `human` lines are colored. Default no. */
  readonly colors?: boolean
  /** Process ID of a worker, added to its lines. Default none. */
  readonly worker?: number
  /** Default 2, standard error. */
  readonly fd?: number
}

/**
 * Opens a log on a file descriptor. Lines are batched, so that requests do not cost a system call each; warnings and
 * errors are written at once. A blocked or closed reader loses lines and never blocks the process.
 */
export function openLog(options: LogOptions): OpenLog {
  const { colors = false, worker } = options
  const renderOwn =
    options.format === 'human'
      ? (level: LogLevel, fields: object, message: string) => renderHumanLine(level, fields, message, { colors })
      : (level: LogLevel, fields: object, message: string) => renderLine(NUMBERS[level], fields, message)
  const render: typeof renderOwn =
    worker === undefined ? renderOwn : (level, fields, message) => renderOwn(level, { ...fields, worker }, message)
  let lost = 0
  let onLost: ((lines: number) => void) | undefined
  const writer = new LineWriter(options.fd ?? 2, {
    renderLost: (lines) => render('warn', { lines }, 'log lines dropped, stderr was blocked'),
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

/** Renders a line in pino's format. Omits fields without a JSON form (cycles, BigInt). */
export function renderLine(level: number, fields: object, message: string, nowMs: EpochMs = Date.now()): string {
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
