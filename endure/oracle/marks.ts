/** The holder of a secret: the proxy holds a caller's secret only during a request. */
export type Holder = 'caller' | 'proxy'

/** Every secret of a run, to be found wherever it must not be. */
export interface Marks {
  /** Knows a secret from now on; `what` says which in a report, without its value. Default for `holder`: the proxy. */
  add(secret: string, what: string, holder?: Holder): void
  /** Known secrets in a text; with `holder` only those of this holder. */
  find(text: string, holder?: Holder): readonly string[]
  readonly count: number
}

/** Shorter ones would be found by chance. */
const LEAST_CHARS = 16
const WORDS = /[A-Za-z0-9_-]{16,}/g
const JWT = /^eyJ[\w-]+\.([\w-]+)\.([\w-]+)$/

/** Looks for whole words, so that the cost is linear in the text however many secrets there are. */
export function createMarks(): Marks {
  const known = new Map<string, { readonly what: string; readonly holder: Holder }>()
  return {
    add(secret, what, holder = 'proxy') {
      // The header of a JWT is that of all others of its key.
      const jwt = JWT.exec(secret)
      for (const word of jwt === null ? (secret.match(WORDS) ?? []) : jwt.slice(1))
        if (word.length >= LEAST_CHARS) known.set(word, { what, holder })
    },
    find(text, holder) {
      const found = (text.match(WORDS) ?? []).flatMap((word) => known.get(word) ?? [])
      return [...new Set(found.filter((one) => holder === undefined || one.holder === holder).map(({ what }) => what))]
    },
    get count() {
      return known.size
    },
  }
}
