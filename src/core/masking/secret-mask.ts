import { Needles, type OnFound } from './needles.ts'
import { undoEscapes } from './undo-escapes.ts'

/** What is shown instead of a secret. */
export const MASK = '[masked]'

/** Shorter ones are in other texts by chance; such a value is masked where it stands alone. */
const MIN_WITHIN = 6

/** One set of secrets, made once and found in many texts. */
export type SecretSet = Needles

/** The set of these texts. */
export const secretSet = (texts: Iterable<string>): SecretSet =>
  new Needles([...texts].filter(({ length }) => length >= MIN_WITHIN))

/**
 * The texts that are secret somewhere, and other texts without them: as they are, escaped (JSON, URLs, HTML), in base64,
 * base64url or hex, one layer of it; of one that is cut, the beginning or the end, from 12 characters on. Linear in the length
 * of the text. For everything that keeps texts from outside: page, log, traces.
 */
export class SecretMask {
  /** Made when there is something for it: most requests have no secret of their own. */
  #own: Set<string> | undefined
  readonly #sets: SecretSet[] = []
  #ofOwn: SecretSet | undefined
  #longest = 0

  /** Length of the longest text that was added, in characters. */
  get longest(): number {
    return this.#longest
  }

  /** Adds one text, unless it has fewer than 6 characters. */
  add(text: string): void {
    if (text.length < MIN_WITHIN || this.#own?.has(text) === true) return
    this.#own ??= new Set()
    this.#own.add(text)
    this.#longest = Math.max(this.#longest, text.length)
    this.#ofOwn = undefined
  }

  /** Texts that serve many requests; `longest` is the length of the longest of them. */
  addSet(set: SecretSet, longest: number): void {
    if (!this.#sets.includes(set)) this.#sets.push(set)
    this.#longest = Math.max(this.#longest, longest)
  }

  /** True when a text holds one of them. */
  isIn(text: string): boolean {
    if (text.length < MIN_WITHIN || this.#isEmpty) return false
    let isFound = false
    this.#find(text, () => (isFound = true))
    return isFound
  }

  /** The text with each of them masked. */
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

/** The text without the stretches that were found; those that touch are masked as one. */
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
