import { setImmediate as breathe } from 'node:timers/promises'

const LONGEST_GRAM = 3
/** Texts looked at before other requests get their turn. */
const SLICE = 200
const BITS = 6
const SYMBOLS = 1 << BITS

/** Six bits per character: letters, digits and what stands in names are told apart, the rest shares the other places. */
const SYMBOL_OF = new Uint8Array(128).map((_, code) => {
  const at = 'abcdefghijklmnopqrstuvwxyz0123456789-._/ '.indexOf(String.fromCharCode(code))
  return at === -1 ? symbolOfOther(code) : at
})

function symbolOfOther(code: number): number {
  return 41 + (code % (SYMBOLS - 41))
}

const symbolOf = (code: number): number => SYMBOL_OF[code] ?? symbolOfOther(code)

/** Where the texts are that hold each sequence of `length` characters: `found` from `starts[gram]` to `starts[gram + 1]`. */
interface Grams {
  readonly starts: Uint32Array
  readonly found: Uint32Array
}

/**
 * Finds the texts that may contain another, without looking at all of them: for every one, two or three characters in a
 * row it knows the texts that have them, in order. 10,000 texts of 150 characters take about 13 MiB and half a second.
 */
export class SearchIndex {
  readonly #grams: readonly Grams[]

  private constructor(grams: readonly Grams[]) {
    this.#grams = grams
  }

  /** An index of `texts`, which are in lower case; made a slice at a time. */
  static async of(texts: readonly string[]): Promise<SearchIndex> {
    const grams: Grams[] = []
    for (let length = 1; length <= LONGEST_GRAM; length++) grams.push(await gramsOf(texts, length))
    return new SearchIndex(grams)
  }

  /** Indexes, in order, of texts that may contain `wanted` (lower case, not empty); the ones that do are among them. */
  candidates(wanted: string): Uint32Array {
    const length = Math.min(wanted.length, LONGEST_GRAM)
    const grams = this.#grams[length - 1]
    let best: Uint32Array | undefined
    if (grams !== undefined) {
      const { starts, found } = grams
      eachGram(wanted, length, (gram) => {
        const [from = 0, to = 0] = [starts[gram], starts[gram + 1]]
        if (best === undefined || to - from < best.length) best = found.subarray(from, to)
      })
    }
    return best ?? new Uint32Array()
  }
}

function eachGram(text: string, length: number, use: (gram: number) => void): void {
  const mask = SYMBOLS ** length - 1
  let gram = 0
  for (let index = 0; index < text.length; index++) {
    gram = ((gram << BITS) | symbolOf(text.charCodeAt(index))) & mask
    if (index >= length - 1) use(gram)
  }
}

/** Counts first and fills then, so that there is one array instead of one per gram. */
async function gramsOf(texts: readonly string[], length: number): Promise<Grams> {
  const starts = new Uint32Array(SYMBOLS ** length + 1)
  await eachOfAll(texts, length, (gram) => void (starts[gram + 1] = (starts[gram + 1] ?? 0) + 1))
  for (let gram = 1; gram < starts.length; gram++) starts[gram] = (starts[gram] ?? 0) + (starts[gram - 1] ?? 0)
  const found = new Uint32Array(starts.at(-1) ?? 0)
  const next = starts.slice()
  await eachOfAll(texts, length, (gram, index) => {
    const at = next[gram] ?? 0
    found[at] = index
    next[gram] = at + 1
  })
  return { starts, found }
}

/** Each gram of each text, once per text. */
async function eachOfAll(
  texts: readonly string[],
  length: number,
  use: (gram: number, index: number) => void,
): Promise<void> {
  // The text, counted from 1, in which a gram was last seen.
  const last = new Uint32Array(SYMBOLS ** length)
  for (const [index, text] of texts.entries()) {
    if (index % SLICE === SLICE - 1) await breathe()
    eachGram(text, length, (gram) => {
      if (last[gram] === index + 1) return
      last[gram] = index + 1
      use(gram, index)
    })
  }
}
