import { Needles, type OnFound } from './needles.ts'
import { undoEscapes } from './undo-escapes.ts'

/** Replacement for a secret. */
export const MASK = '[masked]'

/** Shorter secrets occur in other text by chance; they are masked only as whole values. */
const MIN_WITHIN = 6

/** A compiled set of secrets, for many searches. */
export type SecretSet = Needles

/** Compiles a set of secrets. */
export const secretSet = (texts: Iterable<string>): SecretSet =>
  new Needles([...texts].filter(({ length }) => length >= MIN_WITHIN))

/**
 * Masks secrets in text: verbatim, escaped once (JSON, URL, HTML), in base64, base64url or hex. A truncated secret is
 * found by 12 characters of its beginning or end. Linear in the length of the text. Used for external text in the
 * inspector, log and traces.
 */
export class SecretMask {
  /** Built on demand; most requests have no secret of their own. */
  #own: Set<string> | undefined
  readonly #sets: SecretSet[] = []
  #ofOwn: SecretSet | undefined
  #longest = 0

  /** Length of the longest text that was added, in characters. */
  get longest(): number {
    return this.#longest
  }

  /** Adds a secret; ignored under 6 characters. */
  add(text: string): void {
    if (text.length < MIN_WITHIN || this.#own?.has(text) === true) return
    this.#own ??= new Set()
    this.#own.add(text)
    this.#longest = Math.max(this.#longest, text.length)
    this.#ofOwn = undefined
  }

  /** Adds a set shared by many requests; `longest` is the length of its longest secret. */
  addSet(set: SecretSet, longest: number): void {
    if (!this.#sets.includes(set)) this.#sets.push(set)
    this.#longest = Math.max(this.#longest, longest)
  }

  /** True when the text holds one of the secrets. */
  isIn(text: string): boolean {
    if (text.length < MIN_WITHIN || this.#isEmpty) return false
    let isFound = false
    this.#find(text, () => (isFound = true))
    return isFound
  }

  /** Returns the text with every secret masked. */
  maskIn(text: string): string {
    if (text.length < MIN_WITHIN || this.#isEmpty) return text
    const found: [number, number][] = []
    this.#find(text, (from, to) => found.push([from, to]))
    return found.length === 0 ? text : without(text, found)
  }

  get #isEmpty(): boolean {
    return this.#own === undefined && this.#sets.length === 0
  }

  #find(text: string, onFound: OnFound): void {
    if (this.#own !== undefined) this.#ofOwn ??= secretSet(this.#own)
    const sets = this.#ofOwn === undefined ? this.#sets : [this.#ofOwn, ...this.#sets]
    for (const set of sets) set.find(text, onFound)
    const unescaped = undoEscapes(text)
    if (unescaped === undefined) return
    for (const set of sets) set.find(unescaped.text, (from, to) => onFound(...unescaped.placeOf(from, to)))
  }
}

/** Replaces the matches; adjacent ones become one mask. */
function without(text: string, found: [number, number][]): string {
  let masked = ''
  let end = 0
  let isMasked = false
  for (const [from, to] of found.sort(([one], [other]) => one - other)) {
    if (to <= end) continue
    if (!isMasked || from > end) masked += text.slice(end, Math.max(from, end)) + MASK
    isMasked = true
    end = to
  }
  return masked + text.slice(end)
}
