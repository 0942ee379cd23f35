/** Every secret of a run, to be found wherever it must not be. */
export interface Marks {
  /** Knows a secret from now on; `what` says which in a report, without its value. */
  add(secret: string, what: string): void
  /** What of the known is in a text. */
  find(text: string): readonly string[]
  readonly count: number
}

/** Shorter ones would be found by chance. */
const LEAST_CHARS = 16
const WORDS = /[A-Za-z0-9_-]{16,}/g
const JWT = /^eyJ[\w-]+\.([\w-]+)\.([\w-]+)$/

/** Looks for whole words, so that the cost is linear in the text however many secrets there are. */
export function createMarks(): Marks {
  const known = new Map<string, string>()
  return {
    add(secret, what) {
      // The header of a JWT is that of all others of its key.
      const jwt = JWT.exec(secret)
      for (const word of jwt === null ? (secret.match(WORDS) ?? []) : jwt.slice(1))
        if (word.length >= LEAST_CHARS) known.set(word, what)
    },
    find: (text) => [...new Set((text.match(WORDS) ?? []).flatMap((word) => known.get(word) ?? []))],
    get count() {
      return known.size
    },
  }
}
