import { CredentialRefusal, type Log, type MonotonicMs, monotonicNow } from '../core/index.ts'
import { isStream } from './answers.ts'
import { EventReader, type Message } from '../mcp/index.ts'
import { reconnectMs } from './reconnect.ts'
import { isSessionLost, isTransient } from './refusal.ts'
import { codeOf } from './bridge-error.ts'
import type { Wire } from './wire.ts'

/** A stream open for this long counts as a success, even without events. */
const SUCCESS_MS = 10_000
/** A stream silent for this long after a suspend is reopened. */
const SILENT_MS = 5_000
/** Interval of the clock check; a larger jump means that the machine was suspended. */
const CLOCK_CHECK_MS = 1_000
const SLEPT_MS = 15_000

export interface ServerStreamDeps {
  readonly wire: Wire
  readonly log: Log
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  readonly deliver: (message: Message) => void
}

/** Result of one attempt. */
interface Attempt {
  /** When the server started to stream; undefined if it did not. */
  openedAtMs: MonotonicMs | undefined
  hasMessages: boolean
}

/**
 * Keeps the GET stream of a session open for messages outside of requests (MCP 2025-11-25, listening for messages),
 * and resumes it. Returns if the server supports none, or when aborted.
 */
export async function followServer(deps: ServerStreamDeps, signal: AbortSignal): Promise<void> {
  const { wire, log, pause } = deps
  let events = new EventReader(wire.reading.maxBytes)
  let hasListened = false
  let failures = 0
  while (!signal.aborted) {
    const { number } = wire.session
    const { lastEventId } = events
    const attempt: Attempt = { openedAtMs: undefined, hasMessages: false }
    try {
      const outcome = await once(deps, events, signal, { attempt, hasListened })
      if (outcome === 'none') return
      if (outcome === 'lost') {
        // A server that loses each session by this request supports no stream.
        if (wire.beganForStream === number) return
        await wire.renew(number)
        wire.beganForStream = wire.session.number
        events = new EventReader(wire.reading.maxBytes)
      }
    } catch (error) {
      if (signal.aborted) return
      const why = error instanceof CredentialRefusal ? error.reason : codeOf(error)
      log.info({ why }, 'stream of server messages ended, reopening')
      events.restart()
    }
    if (signal.aborted) return
    const { openedAtMs, hasMessages } = attempt
    hasListened ||= openedAtMs !== undefined
    const hasLived = openedAtMs !== undefined && monotonicNow() - openedAtMs >= SUCCESS_MS
    failures = hasMessages || hasLived || events.lastEventId !== lastEventId ? 0 : failures + 1
    await pause(reconnectMs(events, failures), signal).catch(() => undefined)
  }
}

async function once(
  { wire, deliver, log }: ServerStreamDeps,
  events: EventReader,
  signal: AbortSignal,
  { attempt, hasListened }: { readonly attempt: Attempt; readonly hasListened: boolean },
): Promise<'ended' | 'none' | 'lost'> {
  const silence = new AbortController()
  const answer = await wire.listen(events.lastEventId, AbortSignal.any([signal, silence.signal]))
  if (answer.status !== 200 || !isStream(answer)) {
    const refusal = await wire.refusalOf(answer)
    const isLost = refusal.status === 404 || (hasListened && isSessionLost(refusal) && refusal.text !== '')
    if (isLost && wire.session.current?.id !== undefined) return 'lost'
    // Statuses other than 405 also mean that there is no stream, unless one was open: the server may not have noticed
    // its end.
    if (refusal.status === 405 || (!hasListened && refusal.status < 500 && !isTransient(refusal.status))) return 'none'
    log.info({ status: refusal.status }, 'stream of server messages rejected, retrying')
    return 'ended'
  }
  attempt.openedAtMs = monotonicNow()
  wire.beganForStream = undefined
  const watch = watchSilence(events, () => silence.abort(new Error('no data after a suspend')))
  try {
    for await (const message of wire.messages(answer, events)) {
      attempt.hasMessages = true
      if (message.kind === 'malformed') log.warn({ why: message.why }, 'server event is not a message')
      else deliver(message)
    }
  } finally {
    clearInterval(watch)
  }
  events.restart()
  return 'ended'
}

/** Calls back if no data arrive after a suspend, which a jump of the clock shows: the connection may be dead. */
function watchSilence(events: EventReader, onSilence: () => void): NodeJS.Timeout {
  let lastMs = Date.now()
  let woke: { readonly atMs: MonotonicMs; readonly bytes: number } | undefined
  return setInterval(() => {
    const nowMs = Date.now()
    if (nowMs - lastMs > SLEPT_MS) woke = { atMs: monotonicNow(), bytes: events.receivedBytes }
    lastMs = nowMs
    if (woke === undefined || monotonicNow() - woke.atMs < SILENT_MS) return
    if (events.receivedBytes === woke.bytes) onSilence()
    woke = undefined
  }, CLOCK_CHECK_MS).unref()
}
