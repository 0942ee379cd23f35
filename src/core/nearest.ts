/** With more known names than this, no suggestion is made. */
const MOST_KNOWN = 200

/** The known name nearest to a misspelled one, if any is near enough. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  // Longer names are no misspellings of known ones. Both limits bound the work per name.
  if (name.length > 64 || known.length > MOST_KNOWN) return undefined
  const wanted = name.toLowerCase()
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (beforePrevious[j - 2] ?? 0) + 1)
      }
      current.push(least)
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length] ?? 0
}
