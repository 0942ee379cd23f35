import { about, type CheckResult } from './result.ts'

/** Somebody else's time at a moment of ours. */
interface Note {
  readonly service: string
  readonly differenceMs: number
  readonly mostMs: number
  /** As people are told. */
  readonly toleratedMs: number
}

/** What the services that were asked say about the time. */
export interface ClockNotes {
  /** `date` is the header of an answer that came at `receivedAtMs`; a difference over `mostMs` is a failure. */
  note(service: string, date: string | undefined, receivedAtMs: number, mostMs: number): void
  /** The same where the difference is known, in milliseconds ahead of ours. */
  differs(service: string, differenceMs: number, mostMs: number): void
  lines(): readonly CheckResult[]
}

/** `Date` has whole seconds, and the answer was on its way. */
const RESOLUTION_MS = 2000

/** Collects them; a service counts once, with its largest difference. */
export function createClockNotes(): ClockNotes {
  const notes = new Map<string, Note>()
  const keep = (note: Note): void => {
    const known = notes.get(note.service)
    if (known === undefined || Math.abs(known.differenceMs) < Math.abs(note.differenceMs)) notes.set(note.service, note)
  }
  return {
    note(service, date, receivedAtMs, mostMs) {
      const atMs = Date.parse(date ?? '')
      if (Number.isNaN(atMs)) return
      keep({ service, differenceMs: atMs + 500 - receivedAtMs, mostMs: mostMs + RESOLUTION_MS, toleratedMs: mostMs })
    },
    differs: (service, differenceMs, mostMs) => keep({ service, differenceMs, mostMs, toleratedMs: mostMs }),
    lines: () => {
      const all = [...notes.values()]
      const wrong = all.filter(({ differenceMs, mostMs }) => Math.abs(differenceMs) > mostMs)
      if (all.length === 0) return [about('clock', 'clock').skipped('no service said what time it is')]
      if (wrong.length === 0) {
        const most = Math.max(...all.map(({ differenceMs }) => Math.abs(differenceMs)))
        const within = Math.max(1, Math.round(most / 1000))
        return [about('clock', 'clock').ok(`${all.map(({ service }) => service).join(', ')} within ${within} s`)]
      }
      return wrong.map(({ service, differenceMs, toleratedMs }) =>
        about('clock', service).failed(
          `it is ${Math.round(Math.abs(differenceMs) / 1000)} s ${differenceMs > 0 ? 'ahead of' : 'behind'} this machine, ${toleratedMs / 1000} s are tolerated`,
          'Let both machines take their time from NTP; tokens and signatures are judged by it.',
        ),
      )
    },
  }
}
