import type { LogLevel } from './log-level.ts'
import { type EpochMs, printable } from '../core/index.ts'

/** Select Graphic Rendition (ECMA-48 §8.3.117). */
const RESET = '\x1b[0m'
const DIM = '\x1b[2m'
const RED = '\x1b[31m'
const GREEN = '\x1b[32m'
const YELLOW = '\x1b[33m'
const CYAN = '\x1b[36m'

const LEVEL_COLORS: Readonly<Partial<Record<LogLevel, string>>> = { debug: DIM, info: CYAN, warn: YELLOW, error: RED }
/** Fields of a request printed first, in this order and without names. */
const FIRST = ['route', 'method', 'status', 'reason', 'durationMs'] as const

export interface HumanLineOptions {
  /** Whether to color the output. */
  readonly colors: boolean
  /** Milliseconds since the epoch, printed as local time of day. */
  readonly nowMs?: EpochMs
}

/**
 * Renders a log line for people: time, level, then route, method, status, reason and milliseconds of a request, or the
 * message; then the other fields. External text can neither end the line nor control the terminal.
 */
export function renderHumanLine(
  level: LogLevel,
  fields: object,
  message: string,
  { colors, nowMs = Date.now() }: HumanLineOptions,
): string {
  const paint = (color: string | undefined, text: string): string =>
    colors && color !== undefined && text !== '' ? `${color}${text}${RESET}` : text
  const all = fields as Readonly<Record<string, unknown>>
  const isRequest = message === 'request' && typeof all['durationMs'] === 'number'
  const first = isRequest ? requestWords(all, paint) : [printable(message)]
  const rest = Object.entries(all).filter(([name]) => !isRequest || !FIRST.some((known) => known === name))
  const more = rest.map(([name, value]) => pair(name, value)).filter((text) => text !== '')
  const words = [
    paint(DIM, timeOfDay(nowMs)),
    paint(LEVEL_COLORS[level], level.toUpperCase().padEnd(5)),
    ...first.filter((text) => text !== ''),
    paint(DIM, more.join(' ')),
  ]
  return `${words.filter((text) => text !== '').join(' ')}\n`
}

function requestWords(
  fields: Readonly<Record<string, unknown>>,
  paint: (color: string | undefined, text: string) => string,
): string[] {
  const { route, method, status, reason, durationMs } = fields
  return [
    route === '' || route === undefined ? '-' : textOf(route),
    textOf(method),
    paint(statusColor(Number(status)), textOf(status)),
    paint(RED, textOf(reason)),
    `${textOf(durationMs)} ms`,
  ]
}

function statusColor(status: number): string {
  if (status >= 500) return RED
  return status >= 400 ? YELLOW : GREEN
}

/** `name=value`; empty without a value. */
function pair(name: string, value: unknown): string {
  const text = textOf(value)
  return text === '' ? '' : `${textOf(name)}=${text}`
}

/** One word as it is, other values as JSON; empty for values without a JSON form. */
function textOf(value: unknown): string {
  if (typeof value === 'string' && /^[\w./:@+,%#?&*()[\]~-]+$/.test(value)) return value
  try {
    return printable(JSON.stringify(value) ?? '')
  } catch {
    return ''
  }
}

/** Local time: `14:03:07.045`. */
function timeOfDay(nowMs: EpochMs): string {
  const at = new Date(nowMs)
  const two = (value: number): string => String(value).padStart(2, '0')
  const ms = String(at.getMilliseconds()).padStart(3, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`
}
