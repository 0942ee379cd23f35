import { whyDropped, type ResponseDropRule } from '../http/index.ts'
import { pairsOf } from './masked-heads.ts'
import type { Attempt, RequestRecord } from './record.ts'

/** A header line as sent, with its previous value. */
export interface MarkedHeader {
  readonly name: string
  readonly value: string
  /** `added` by the proxy, `replaced` if the caller sent a different value, `same` as the caller's. */
  readonly mark: 'added' | 'replaced' | 'same'
}

/** A phase of a request, in milliseconds since its arrival. */
export interface Phase {
  readonly name: 'waiting' | 'caller' | 'body' | 'credential' | 'connect' | 'first_byte' | 'answer'
  readonly attempt: number | undefined
  readonly fromMs: number
  readonly toMs: number
}

/** A response header that was removed or changed for the client. */
export interface DroppedHeader {
  readonly name: string
  readonly value: string
  readonly rule: ResponseDropRule | 'replaced' | 'answered_by_us'
}

/** A record for the page, with the headers that were added, removed and replaced. */
export function describe(record: RequestRecord) {
  const { received, responded, dropped, attempts, ...rest } = record
  const last = attempts.findLast((attempt) => attempt.received !== undefined)
  return {
    ...rest,
    received: {
      headers: pairsOf(received),
      dropped: ruledNames(dropped),
    },
    attempts: attempts.map((attempt, index) =>
      describeAttempt(attempt, record, attempts[index + 1]?.sent !== undefined),
    ),
    answer: {
      fromBackend: last?.received && { status: last.received.status, headers: pairsOf(last.received.head) },
      toClient: responded && { status: responded.status, headers: pairsOf(responded.head) },
      dropped: answerDrops(last, record),
    },
    timeline: timelineOf(record),
  }
}

function describeAttempt({ sent, received, ...attempt }: Attempt, record: RequestRecord, isRepeated: boolean) {
  return {
    ...attempt,
    isRepeated,
    ...(received === undefined ? {} : { status: received.status }),
    ...(sent === undefined
      ? {}
      : {
          sent: {
            method: sent.method,
            target: sent.target,
            headers: markedHeaders(sent.head, record),
            removed: removedNames(sent.head, record),
            signing: sent.signing,
          },
        }),
  }
}

function markedHeaders(sent: string, { received, dropped }: RequestRecord): MarkedHeader[] {
  const before = linesByName(received)
  // Framing and host are regenerated, possibly unchanged.
  const gone = new Set(
    ruledNames(dropped)
      .filter(({ rule }) => rule !== 'regenerated')
      .map(({ name }) => name),
  )
  return pairsOf(sent).map(([name, value]) => {
    const lines = before.get(name)
    if (lines === undefined) return { name, value, mark: 'added' }
    // Masked values all look the same: a dropped one is never `same`.
    const at = gone.has(name) ? -1 : lines.indexOf(value)
    if (at === -1) return { name, value, mark: 'replaced' }
    lines.splice(at, 1)
    return { name, value, mark: 'same' }
  })
}

/** Names of received headers that were not forwarded in any form. */
function removedNames(sent: string, { received }: RequestRecord): string[] {
  const there = new Set(pairsOf(sent).map(([name]) => name))
  return [...linesByName(received).keys()].filter((name) => !there.has(name))
}

function answerDrops(last: Attempt | undefined, { responded, why }: RequestRecord): DroppedHeader[] {
  if (last?.received === undefined || responded === undefined) return []
  // The proxy generates failures itself: no header of the backend was forwarded or dropped.
  if (why !== undefined)
    return pairsOf(last.received.head).map(([name, value]) => ({ name, value, rule: 'answered_by_us' }))
  const after = linesByName(responded.head)
  const connection = new Set<string>()
  for (const [name, value] of pairsOf(last.received.head))
    if (name === 'connection') for (const word of value.toLowerCase().split(/[\s,]+/)) connection.add(word)
  return pairsOf(last.received.head).flatMap(([name, value]) => {
    const lines = after.get(name)
    const at = lines?.indexOf(value) ?? -1
    if (lines !== undefined && at !== -1) {
      lines.splice(at, 1)
      return []
    }
    const rule = lines === undefined ? (connection.has(name) ? 'hop_by_hop' : whyDropped(name)) : 'replaced'
    return [{ name, value, rule }]
  })
}

/** The phases of a request; phases not reached are omitted, the current one ends now. */
function timelineOf({ marks, attempts, summary }: RequestRecord): Phase[] {
  const phases: Phase[] = []
  const endMs = marks.finished ?? summary.durationMs
  let atMs = 0
  const until = (name: Phase['name'], toMs: number | undefined, attempt?: number): void => {
    if (toMs === undefined) return
    phases.push({ name, attempt, fromMs: atMs, toMs })
    atMs = toMs
  }
  until('waiting', marks.matched)
  until('caller', marks.known)
  for (const attempt of attempts) {
    const { number, beganMs, armedMs, sealedMs, sendingMs, receivedMs } = attempt
    if (number === 1) until('body', beganMs)
    until('credential', armedMs, number)
    // Final headers and signing count as the proxy's own time.
    until('connect', sendingMs ?? (sealedMs === undefined ? undefined : receivedMs), number)
    until('first_byte', receivedMs, number)
  }
  if (endMs > atMs) phases.push({ name: 'answer', attempt: undefined, fromMs: atMs, toMs: endMs })
  return phases
}

function ruledNames(dropped: readonly string[]): { name: string; rule: string }[] {
  const names: { name: string; rule: string }[] = []
  for (let index = 0; index + 1 < dropped.length; index += 2)
    names.push({ name: dropped[index] ?? '', rule: dropped[index + 1] ?? '' })
  return names
}

function linesByName(head: string): Map<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [name, value] of pairsOf(head)) {
    const known = lines.get(name)
    if (known === undefined) lines.set(name, [value])
    else known.push(value)
  }
  return lines
}
