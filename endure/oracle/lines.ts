import type { Findings } from './findings.ts'
import type { Marks } from './marks.ts'

/** Reads what the replicas print: each answer has its line, once, and no line has a secret. */
export interface Lines {
  /** A replica has printed a line. */
  read(replica: string, line: string): void
  /** An answer with this id and status has come; `servedBy`: of this replica, because no other may give it. */
  expect(requestId: string, status: number, what: string, servedBy?: string): void
  /** Looks for the lines of answers that came before a moment of `performance.now()`; `isExcused`: log lines of a replica were lost. */
  check(before: number, isExcused: (at: number) => boolean): void
  readonly count: number
  /** The logged reason of a rejected request; undefined when it is no longer known. */
  detailOf(requestId: string): string | undefined
  /** How many lines of a level there were, by message. */
  readonly warnings: ReadonlyMap<string, number>
}

interface Wanted {
  readonly status: number
  readonly what: string
  readonly at: number
  readonly servedBy: string | undefined
}

/** As the log has them. */
const LEVELS: ReadonlyMap<unknown, string> = new Map([
  [40, 'warn'],
  [50, 'error'],
])
const MOST_SHOWN = 120
const MOST_OF_ERROR = 600
/** All replicas have the address that clients use for their resources, and none listens there. */
const EXPECTED = /\.resourceUrl {2}its port is /
const KEPT_MS = 120_000
const MOST_DETAILS = 100_000

export function createLines(
  findings: Pick<Findings, 'add'>,
  marks: Pick<Marks, 'find'>,
  now: () => number = () => performance.now(),
): Lines {
  const wanted = new Map<string, Wanted>()
  const seen = new Map<string, { readonly status: unknown; readonly at: number; readonly replica: string }>()
  const details = new Map<string, string>()
  const warnings = new Map<string, number>()
  let count = 0
  return {
    read(replica, line) {
      count += 1
      for (const what of marks.find(line)) findings.add('leaked secret', `${what}, in a line of ${replica}`)
      if (!line.startsWith('{')) return
      const { msg, level, requestId, status, detail } = JSON.parse(line) as Record<string, unknown>
      const name = LEVELS.get(level)
      if (name !== undefined && !EXPECTED.test(String(msg))) {
        const more = name === 'error' ? ` ${line.slice(0, MOST_OF_ERROR)}` : ''
        const warning = `${name} ${String(msg).slice(0, MOST_SHOWN)}${more}`
        warnings.set(warning, (warnings.get(warning) ?? 0) + 1)
      }
      if (msg !== 'request' || typeof requestId !== 'string') return
      if (seen.has(requestId)) findings.add('doubled log line', `request ${requestId} at ${replica}`)
      seen.set(requestId, { status, at: now(), replica })
      if (typeof detail === 'string') {
        details.set(requestId, `${replica}: ${detail}`)
        const oldest = details.size > MOST_DETAILS ? details.keys().next().value : undefined
        if (oldest !== undefined) details.delete(oldest)
      }
    },
    expect: (requestId, status, what, servedBy) => void wanted.set(requestId, { status, what, at: now(), servedBy }),
    check(before, isExcused) {
      for (const [id, { status, what, at, servedBy }] of wanted) {
        if (at >= before) continue
        wanted.delete(id)
        const line = seen.get(id)
        if (line === undefined) {
          if (!isExcused(at)) findings.add('missing log line', `${what}: request ${id}`)
        } else if (line.status !== status)
          findings.add('missing log line', `${what}: request ${id} has status ${String(line.status)}, not ${status}`)
        else if (servedBy !== undefined && servedBy !== line.replica)
          findings.add('served who must be refused', `${what}: by ${line.replica}, whose clock is right`, id)
      }
      for (const [id, { at }] of seen) if (at < before - KEPT_MS) seen.delete(id)
    },
    detailOf: (requestId) => details.get(requestId),
    get count() {
      return count
    },
    warnings,
  }
}
