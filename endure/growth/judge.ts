import { MEASURES, type MeasureName, type Sample } from './sample.ts'

/** The course of a measure in the evaluated part of a run. */
export interface Growth {
  readonly measure: MeasureName
  readonly of: string
  readonly from: number
  readonly to: number
  /** By the median of all slopes, which peaks under a fault do not move. */
  readonly perHour: number
  /** Permitted growth in the evaluated part; undefined: not evaluated. */
  readonly bound: number | undefined
  readonly isKept: boolean
}

/**
 * Until then caches fill and code is compiled: a third of a run, and at least the longest cache lifetime of callers who come
 * and go (whose tokens were good, for ten minutes), so that at the end of it as much goes as comes.
 */
const WARM_UP_PART = 1 / 3
const LEAST_WARM_UP_SECONDS = 660
/** A shorter part says nothing about a slope. */
const LEAST_JUDGED_SECONDS = 300
const LEAST_SAMPLES = 8

/** Evaluates each measure of the processes that ran from the warm-up to the end. */
export function growthOf(samples: readonly Sample[], runSeconds: number): readonly Growth[] {
  const warmUpSeconds = Math.max(runSeconds * WARM_UP_PART, LEAST_WARM_UP_SECONDS)
  const isLong = runSeconds - warmUpSeconds >= LEAST_JUDGED_SECONDS
  const fromSeconds = isLong ? warmUpSeconds : runSeconds * WARM_UP_PART
  const late = samples.filter(({ atSeconds }) => atSeconds >= fromSeconds)
  const evaluated = runSeconds - fromSeconds
  return [...Map.groupBy(late, ({ of }) => of)].flatMap(([of, own]) =>
    MEASURES.flatMap(({ name, mayGrow }): Growth[] => {
      const points = own.flatMap(({ atSeconds, values }) => {
        const value = values[name]
        return value === undefined || Number.isNaN(value) ? [] : [[atSeconds, value] as const]
      })
      const [first, last] = [points[0], points.at(-1)]
      if (first === undefined || last === undefined || points.length < LEAST_SAMPLES) return []
      const slope = medianSlope(points)
      const seconds = last[0] - first[0]
      // A restarted process warmed up in the evaluated part.
      const isWhole = isLong && seconds >= evaluated * 0.8
      const level = median(points.map(([, value]) => value))
      const bound = isWhole && mayGrow !== undefined ? level * mayGrow.part + mayGrow.by : undefined
      const isKept = bound === undefined || slope * seconds <= bound
      return [{ measure: name, of, from: first[1], to: last[1], perHour: slope * 3_600, bound, isKept }]
    }),
  )
}

type Point = readonly [atSeconds: number, value: number]

/** Theil and Sen: the median of the slopes between all points. */
export function medianSlope(points: readonly Point[]): number {
  const slopes = points.flatMap(([at, value], index) =>
    points.slice(index + 1).flatMap(([later, other]) => (later > at ? [(other - value) / (later - at)] : [])),
  )
  return slopes.length === 0 ? 0 : median(slopes)
}

function median(values: readonly number[]): number {
  const order = values.toSorted((one, other) => one - other)
  return order[Math.floor(order.length / 2)] ?? Number.NaN
}
