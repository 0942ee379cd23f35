import type { EventsResult, LoadResult } from './commands.ts'
import { collectGarbage } from './inspector.ts'
import { pause } from './load/pace.ts'
import { cpuOf, type Generator, memoryOf } from './processes.ts'

/** Something that requests go through: `pid` is undefined for the backend itself. */
export interface Subject {
  readonly name: string
  readonly url: string
  readonly pid: number | undefined
  /** Values of `Authorization` that the requests have in turn. */
  readonly authorizations?: readonly string[]
  /** Requests that were prepared under this name. */
  readonly prepared?: string
}

export interface LoadFigures {
  readonly cpuMicros: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU per request against the bare proxy in the same run. */
  readonly ratio: number
  /** The median of the rounds' ratios: a disturbance of a whole round affects both sides. */
  readonly pairedRatio: number
}

export interface StreamFigures {
  readonly bytesPerStream: number
  readonly firstP50Ms: number
  readonly firstP99Ms: number
  readonly eventP50Ms: number
  readonly eventP99Ms: number
}

/**
 * The lower quartile: for CPU time the better estimate where other things run, because they only ever add (cold caches, a
 * shared core). NaN when the list is empty.
 */
export const lowerQuartile = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[Math.floor((values.length - 1) / 4)] ?? Number.NaN

/** The middle of a list of numbers; NaN when it is empty. */
export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? (upper + (sorted[middle - 1] ?? Number.NaN)) / 2 : upper
}

/** The result of a load round for one subject. */
export interface Round {
  readonly cpuMicros: number
  readonly load: LoadResult
}

const oneRound = async (
  generator: Generator,
  subject: Subject,
  shape: { size: number; connections: number; ms: number },
): Promise<Round> => {
  const { url, pid, authorizations, prepared } = subject
  const before = pid === undefined ? 0 : cpuOf(pid)
  const load = await generator.ask<LoadResult>({ kind: 'load', url, authorizations, prepared, ...shape })
  const after = pid === undefined ? 0 : cpuOf(pid)
  return { cpuMicros: (after - before) / 1000 / load.requests, load }
}

/**
 * Measures all subjects in rounds, each round in another order, so that what else the machine does falls on all of
 * them. Gives the rounds of each subject by its name, after those in `before`.
 */
export const loadRounds = async (
  generator: Generator,
  subjects: readonly Subject[],
  shape: { size: number; connections: number; ms: number },
  rounds: number,
  before: ReadonlyMap<string, readonly Round[]> = new Map(),
): Promise<Map<string, Round[]>> => {
  const seen = new Map<string, Round[]>(subjects.map(({ name }) => [name, [...(before.get(name) ?? [])]]))
  for (let round = 0; round < rounds; round++) {
    const shift = round % subjects.length
    for (const subject of [...subjects.slice(shift), ...subjects.slice(0, shift)]) {
      seen.get(subject.name)?.push(await oneRound(generator, subject, shape))
    }
  }
  return seen
}

/** Summary of rounds: CPU figures are lower quartiles, the others medians. */
export const figuresOf = (seen: ReadonlyMap<string, readonly Round[]>, bare: string): Map<string, LoadFigures> => {
  const cpuOfRounds = (name: string): number => lowerQuartile((seen.get(name) ?? []).map((round) => round.cpuMicros))
  const base = seen.get(bare) ?? []
  return new Map(
    [...seen].map(([name, own]) => [
      name,
      {
        cpuMicros: cpuOfRounds(name),
        perSecond: median(own.map(({ load }) => load.requests / load.seconds)),
        p50Ms: median(own.map(({ load }) => load.p50Ms)),
        p99Ms: median(own.map(({ load }) => load.p99Ms)),
        ratio: cpuOfRounds(name) / cpuOfRounds(bare),
        pairedRatio: median(own.map(({ cpuMicros }, round) => cpuMicros / (base[round]?.cpuMicros ?? Number.NaN))),
      },
    ]),
  )
}

/** The figures of `rounds` rounds. */
export const measureLoad = async (
  generator: Generator,
  subjects: readonly Subject[],
  bare: string,
  shape: { size: number; connections: number; ms: number },
  rounds: number,
): Promise<Map<string, LoadFigures>> => figuresOf(await loadRounds(generator, subjects, shape, rounds), bare)

/** Streams open before memory is first measured: the setup of the first ones is excluded. */
const IDLE_BEFORE = 100

/**
 * Resident bytes per idle event stream, or per connection that is kept: what more of them add, with the garbage of opening them
 * collected. The process must be `inspectable` on `inspectPort`.
 */
export const measureIdle = async (
  generator: Generator,
  { pid, url }: { readonly pid: number; readonly url: string },
  inspectPort: number,
  kind: 'open-idle' | 'open-kept',
  count: number,
): Promise<number> => {
  const held = async (many: number): Promise<number> => {
    await generator.ask({ kind, url: kind === 'open-idle' ? `${url}/idle` : url, count: many })
    // Twice, because the first collection frees what finalizers still hold.
    for (let time = 0; time < 2; time++) {
      await pause(500)
      await collectGarbage(inspectPort)
    }
    await pause(200)
    return memoryOf(pid)
  }
  const before = await held(IDLE_BEFORE)
  const after = await held(IDLE_BEFORE + count)
  await generator.ask({ kind: 'close-idle', url })
  await pause(300)
  return (after - before) / count
}

/** First-event delay and delay of the events of running streams, in rounds, each in another order; lower quartiles. */
export const measureEvents = async (
  generator: Generator,
  subjects: readonly Subject[],
  shape: { streams: number; ms: number; first: number },
  rounds: number,
): Promise<Map<string, Omit<StreamFigures, 'bytesPerStream'>>> => {
  const seen = new Map<string, { first: EventsResult; events: EventsResult }[]>(subjects.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    const shift = round % subjects.length
    for (const { name, url } of [...subjects.slice(shift), ...subjects.slice(0, shift)]) {
      const first = await generator.ask<EventsResult>({ kind: 'first-events', url: `${url}/idle`, count: shape.first })
      const events = await generator.ask<EventsResult>({
        kind: 'events',
        url: `${url}/events`,
        count: shape.streams,
        ms: shape.ms,
      })
      seen.get(name)?.push({ first, events })
    }
  }
  return new Map(
    subjects.map(({ name }) => {
      const own = seen.get(name) ?? []
      return [
        name,
        {
          firstP50Ms: lowerQuartile(own.map(({ first }) => first.p50Ms)),
          firstP99Ms: lowerQuartile(own.map(({ first }) => first.p99Ms)),
          eventP50Ms: lowerQuartile(own.map(({ events }) => events.p50Ms)),
          eventP99Ms: lowerQuartile(own.map(({ events }) => events.p99Ms)),
        },
      ]
    }),
  )
}
