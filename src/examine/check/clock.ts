import type { EpochMs } from '../../core/index.ts'
import { about, type CheckResult } from './result.ts'

/** Difference between a service's clock and this machine's. */
interface Note {
  readonly service: string
  readonly differenceMs: number
  readonly mostMs: number
  /** The tolerance, for the message. */
  readonly toleratedMs: number
}

/** Clock differences reported by services. */
export interface ClockNotes {
  /** `date` is the header of a response received at `receivedAtMs`. A difference over `mostMs` is a failure. */
  note(service: string, date: string | undefined, receivedAtMs: EpochMs, mostMs: number): void
  /** Adds a known difference in milliseconds, positive if the service is ahead. */
  differs(service: string, differenceMs: number, mostMs: number): void
  lines(): readonly CheckResult[]
}

/** `Date` has a resolution of one second; the rest is latency. */
const RESOLUTION_MS = 2000

/** Collects differences; per service, the largest counts. */
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
      if (all.length === 0) return [about('clock', 'clock').skipped('no server sent a Date header')]
      if (wrong.length === 0) {
        const most = Math.max(...all.map(({ differenceMs }) => Math.abs(differenceMs)))
        const within = Math.max(1, Math.round(most / 1000))
        return [about('clock', 'clock').ok(`${all.map(({ service }) => service).join(', ')} within ${within} s`)]
      }
      return wrong.map(({ service, differenceMs, toleratedMs }) =>
        about('clock', service).failed(
          `${Math.round(Math.abs(differenceMs) / 1000)} s ${differenceMs > 0 ? 'ahead of' : 'behind'} this machine; tolerance ${toleratedMs / 1000} s`,
          'Synchronize both clocks with NTP: tokens and signatures are validated by time.',
        ),
      )
    },
  }
}
