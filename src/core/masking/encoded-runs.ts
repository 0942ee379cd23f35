/** Bytes that were written in other characters. */
export interface DecodedRuns {
  readonly bytes: Buffer
  /** Beginning and end (exclusive) of the characters that a stretch of the bytes was written in. */
  placeOf(from: number, to: number): [number, number]
}

const BETWEEN = 254
const OUTSIDE = 255

/** An alphabet: what each byte stands for, and how many bits that is. */
interface Alphabet {
  readonly values: Uint8Array
  readonly bits: number
  /** Where the first byte may begin, as it is not known what stands before it. */
  readonly phases: number
}

function alphabetOf(characters: readonly string[], between: string, bits: number): Alphabet {
  const values = new Uint8Array(256).fill(OUTSIDE)
  for (const spelling of characters)
    for (let value = 0; value < spelling.length; value++) values[spelling.charCodeAt(value)] = value
  for (const one of between) values[one.charCodeAt(0)] = BETWEEN
  return { values, bits, phases: bits === 6 ? 4 : 2 }
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const ALPHABETS = [
  alphabetOf([`${LETTERS}+/`, `${LETTERS}-_`], '\r\n', 6),
  alphabetOf(['0123456789abcdef', '0123456789ABCDEF'], '\r\n :-,', 4),
]

/**
 * What stands in a text as base64, base64url or hex (RFC 4648; broken into lines, hex with separators too), in runs that come
 * to at least so many bytes. A run is read from each character that a byte may begin at. Linear time.
 */
export function decodedRuns(text: Uint8Array, bytes: number): DecodedRuns[] {
  const all: DecodedRuns[] = []
  for (const alphabet of ALPHABETS) {
    const runs = runsIn(text, alphabet, Math.ceil((bytes * 8) / alphabet.bits))
    if (runs.length === 0) continue
    for (let phase = 0; phase < alphabet.phases; phase++) all.push(decoded(text, runs, alphabet, phase))
  }
  return all
}

/** Beginning and end of each run that is long enough, in turn. */
function runsIn(text: Uint8Array, { values }: Alphabet, shortest: number): number[] {
  const runs: number[] = []
  let start = 0
  let length = 0
  for (let index = 0; index <= text.length; index++) {
    const value = index === text.length ? OUTSIDE : (values[text[index] ?? 0] ?? OUTSIDE)
    if (value < BETWEEN) {
      if (length === 0) start = index
      length++
    } else if (value === OUTSIDE) {
      if (length >= shortest) runs.push(start, index)
      length = 0
    }
  }
  return runs
}

/** Where each byte was read: the first and the last of its characters. */
interface Places {
  readonly first: Uint32Array
  readonly last: Uint32Array
}

function decoded(text: Uint8Array, runs: readonly number[], alphabet: Alphabet, phase: number): DecodedRuns {
  let most = 0
  for (let run = 0; run < runs.length; run += 2)
    most += (((runs[run + 1] ?? 0) - (runs[run] ?? 0)) * alphabet.bits) >> 3
  const bytes = Buffer.allocUnsafe(most)
  const count = decodeInto(bytes, text, runs, alphabet, phase)
  let places: Places | undefined
  return {
    bytes: bytes.subarray(0, count),
    placeOf(from, to) {
      if (places === undefined) {
        // Nearly always nothing is found, and nobody asks where.
        places = { first: new Uint32Array(most), last: new Uint32Array(most) }
        decodeInto(bytes, text, runs, alphabet, phase, places)
      }
      return [places.first[from] ?? 0, (places.last[to - 1] ?? 0) + 1]
    },
  }
}

/** Gives how many bytes there were. */
function decodeInto(
  bytes: Buffer,
  text: Uint8Array,
  runs: readonly number[],
  { values, bits: width }: Alphabet,
  phase: number,
  places?: Places,
): number {
  let count = 0
  for (let run = 0; run < runs.length; run += 2) {
    const end = runs[run + 1] ?? 0
    let held = 0
    let bits = 0
    let skipped = 0
    let before = runs[run] ?? 0
    for (let index = before; index < end; index++) {
      const value = values[text[index] ?? 0] ?? OUTSIDE
      if (value === BETWEEN || skipped++ < phase) continue
      held = ((held << width) | value) & 0xffff
      bits += width
      if (bits >= 8) {
        bits -= 8
        bytes[count] = (held >> bits) & 0xff
        if (places !== undefined) {
          places.first[count] = before
          places.last[count] = index
        }
        count++
      }
      before = index
    }
  }
  return count
}
