import { setImmediate as breathe } from 'node:timers/promises'

/** Elements sorted or merged per slice, about a millisecond. */
const SLICE = 1000

/** Returns a stable sorted copy of `list`, like `Array.prototype.toSorted`, in slices. */
export async function sortInSlices<T>(list: readonly T[], compare: (a: T, b: T) => number): Promise<T[]> {
  let runs: T[][] = []
  for (let from = 0; from < list.length; from += SLICE) {
    runs.push(list.slice(from, from + SLICE).sort(compare))
    await breathe()
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2) merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? [], compare))
    runs = merged
  }
  return runs[0] ?? []
}

async function merge<T>(left: readonly T[], right: readonly T[], compare: (a: T, b: T) => number): Promise<T[]> {
  const merged: T[] = []
  let [l, r] = [0, 0]
  while (l < left.length || r < right.length) {
    if (merged.length % SLICE === SLICE - 1) await breathe()
    // Of equal elements, the left stays first.
    if (r === right.length || (l < left.length && compare(left[l] as T, right[r] as T) <= 0))
      merged.push(left[l++] as T)
    else merged.push(right[r++] as T)
  }
  return merged
}
