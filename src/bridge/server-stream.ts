import { CredentialRefusal, type Log } from '../core/index.ts'
import { endSoon, isStream } from './answers.ts'
import { EventReader, type Message } from '../mcp/index.ts'
import { codeOf } from './way-error.ts'
import type { Wire } from './wire.ts'

const FIRST_PAUSE_MS = 1000
const MAX_PAUSE_MS = 30_000

export interface ServerStreamDeps {
  readonly wire: Wire
  readonly log: Log
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  readonly deliver: (message: Message) => void
}

/**
 * Keeps the GET stream of a session open, on which a server says what belongs to no request (MCP 2025-11-25, listening
 * for messages), and resumes it when it ends. Returns when the server has none, or with the signal.
 */
export async function followServer(deps: ServerStreamDeps, signal: AbortSignal): Promise<void> {
  const { wire, log, pause } = deps
  let events = new EventReader(wire.reading.maxBytes)
  for (let failures = 0; !signal.aborted; failures++) {
    const { number } = wire.session
    try {
      const outcome = await once(deps, events, signal, () => (failures = 0))
      if (outcome === 'none') return
      if (outcome === 'lost') {
        await wire.renew(number)
        events = new EventReader(wire.reading.maxBytes)
      }
    } catch (error) {
      if (signal.aborted) return
      const why = error instanceof CredentialRefusal ? error.reason : codeOf(error)
      log.info({ why }, 'the stream of server messages ended; it will be opened again')
      events.restart()
    }
    if (signal.aborted) return
    const wanted = events.retryMs ?? FIRST_PAUSE_MS
    await pause(Math.min(wanted * 2 ** Math.min(failures, 10), MAX_PAUSE_MS), signal).catch(() => undefined)
  }
}

async function once(
  { wire, deliver, log }: ServerStreamDeps,
  events: EventReader,
  signal: AbortSignal,
  onProgress: () => void,
): Promise<'ended' | 'none' | 'lost'> {
  const answer = await wire.listen(events.lastEventId, signal)
  if (answer.status !== 200 || !isStream(answer)) {
    endSoon(answer.body)
    if (answer.status === 404 && wire.session.current?.id !== undefined) return 'lost'
    // 405 is how a server says that it has none; other refusals would not get better by asking again.
    if (answer.status < 500 && answer.status !== 429) return 'none'
    log.info({ status: answer.status }, 'the stream of server messages is refused for now')
    return 'ended'
  }
  for await (const message of wire.messages(answer, events)) {
    onProgress()
    if (message.kind === 'malformed') log.warn({ why: message.why }, 'the server sent an event that is no message')
    else deliver(message)
  }
  events.restart()
  return 'ended'
}
