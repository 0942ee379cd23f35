import { decodedRuns, encodedRuns } from './encoded-runs.ts'
import { folded } from './folded-bytes.ts'
import { mayHold } from './run-hints.ts'
import { type OnFound, PieceIndex } from './secret-pieces.ts'

/** What stands where something was that nobody may see. */
export const MASK = '[masked]'

/** Shorter ones are in other texts by chance; such a value is masked where it stands alone. */
const MIN_WITHIN = 6
/** How often what was decoded is decoded again: base64 of JSON of base64. */
const MAX_DEPTH = 2
/** So many printable characters in a row are no chance: they may hold something that is encoded once more. */
const OF_A_TEXT = 16

/** One set of secrets, made once and found in many texts. */
export type SecretSet = PieceIndex

/** The set of these texts. */
export const secretSet = (texts: Iterable<string>): SecretSet =>
  new PieceIndex([...texts].filter(({ length }) => length >= MIN_WITHIN).flatMap(formsOf))

/**
 * The texts that are secret somewhere, and what is left of others without them: without each piece of 12 characters of them,
 * as it is, escaped (JSON, URLs, HTML, at any depth), in base64, base64url or hex, and these in each other. Linear in the
 * length of the text. For whatever keeps something that came from outside: page, log, traces, headers of answers.
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

  /** One text; those of fewer than 6 characters are let be. */
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

  /** True when a text holds one of them or a piece of one. */
  isIn(text: string): boolean {
    if (this.#isEmpty) return false
    let isFound = false
    this.#find(Buffer.from(text), () => (isFound = true))
    return isFound
  }

  /** The text with each of them masked. */
  maskIn(text: string): string {
    if (text.length < MIN_WITHIN || this.#isEmpty) return text
    const bytes = Buffer.from(text)
    const found: [number, number][] = []
    this.#find(bytes, (from, to) => found.push([from, to]))
    return found.length === 0 ? text : without(bytes, found)
  }

  get #isEmpty(): boolean {
    return this.#own === undefined && this.#sets.length === 0
  }

  #find(bytes: Uint8Array, onFound: OnFound): void {
    if (this.#own !== undefined) this.#ofOwn ??= secretSet(this.#own)
    const sets = this.#ofOwn === undefined ? this.#sets : [this.#ofOwn, ...this.#sets]
    findIn(bytes, sets, onFound, MAX_DEPTH)
  }
}

/** Each text as bytes: as it is, without its own escapes, and with a form's spaces. */
function formsOf(text: string): Buffer[] {
  const plain = Buffer.from(text)
  const unescaped = folded(plain)?.bytes
  const forms = [plain]
  if (unescaped !== undefined && unescaped.length >= MIN_WITHIN) forms.push(Buffer.from(unescaped))
  if (text.includes(' ')) forms.push(Buffer.from(text.replaceAll(' ', '+')))
  return forms
}

function findIn(text: Uint8Array, sets: readonly SecretSet[], onFound: OnFound, depth: number): void {
  for (const set of sets) set.find(text, onFound)
  findEncoded(text, sets, onFound, depth)
}

/** What is in a text in other characters. */
function findEncoded(text: Uint8Array, sets: readonly SecretSet[], onFound: OnFound, depth: number): void {
  const fold = folded(text)
  if (fold === undefined) return findInRuns(text, sets, onFound, depth)
  const { bytes } = fold
  const onFolded: OnFound = (from, to) => onFound(fold.startOf(from), fold.startOf(to))
  for (const set of sets) set.find(bytes, onFolded)
  findInRuns(bytes, sets, onFolded, depth)
}

function findInRuns(text: Uint8Array, sets: readonly SecretSet[], onFound: OnFound, depth: number): void {
  if (depth === 0) return
  for (const encoded of encodedRuns(text, Math.min(...sets.map(({ shortest }) => shortest)))) {
    if (!mayHold(text, encoded, sets, OF_A_TEXT)) continue
    for (const decoded of decodedRuns(text, encoded)) {
      const { bytes } = decoded
      const onDecoded: OnFound = (from, to) => onFound(...decoded.placeOf(from, to))
      for (const set of sets) set.find(bytes, onDecoded)
      for (const [start, end] of textsIn(bytes))
        findEncoded(bytes.subarray(start, end), sets, (from, to) => onDecoded(start + from, start + to), depth - 1)
    }
  }
}

/** Where texts begin and end in what was decoded, much of which was no encoding of anything. */
function textsIn(bytes: Uint8Array): [number, number][] {
  const texts: [number, number][] = []
  // No text lies between two places so far apart: most bytes are not looked at.
  for (let at = OF_A_TEXT - 1, before = 0; at < bytes.length; at += OF_A_TEXT) {
    if (!isPrintable(bytes[at] ?? 0)) {
      before = at + 1
      continue
    }
    let start = at
    while (start > before && isPrintable(bytes[start - 1] ?? 0)) start--
    while (at < bytes.length && isPrintable(bytes[at] ?? 0)) at++
    if (at - start >= OF_A_TEXT) texts.push([start, at])
    before = at + 1
  }
  return texts
}

const isPrintable = (byte: number): boolean => (byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d)

/** The text without the stretches that were found, whole characters each. */
function without(bytes: Buffer, found: [number, number][]): string {
  const isInside = (at: number): boolean => ((bytes[at] ?? 0) & 0xc0) === 0x80
  let text = ''
  let end = 0
  let isMasked = false
  for (const [from, to] of found.sort(([one], [other]) => one - other)) {
    if (to <= end) continue
    let begin = from
    while (begin > 0 && isInside(begin)) begin--
    if (!isMasked || begin > end) text += `${bytes.toString('utf8', end, Math.max(begin, end))}${MASK}`
    isMasked = true
    end = to
    while (end < bytes.length && isInside(end)) end++
  }
  return text + bytes.toString('utf8', end)
}
