/** Bytes that were written in other characters. */
export interface DecodedRuns {
  readonly bytes: Buffer
  /** Beginning and end (exclusive) of the characters that a stretch of the bytes was written in. */
  placeOf(from: number, to: number): [number, number]
}

/** Stands between characters of one run. Less is the value of a character. */
export const BETWEEN = 254
const OUTSIDE = 255

/** An alphabet: what each byte stands for, and how many bits that is. */
export interface Alphabet {
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

/** Stretches of a text that may be an encoding. */
export interface EncodedRuns {
  readonly alphabet: Alphabet
  /** Beginning and end (exclusive) of each, in turn. */
  readonly runs: readonly number[]
}

/**
 * What may stand in a text as base64, base64url or hex (RFC 4648; broken into lines, hex with separators too), in runs that
 * come to at least so many bytes. Linear time.
 */
export function encodedRuns(text: Uint8Array, bytes: number): EncodedRuns[] {
  const all: EncodedRuns[] = []
  for (const alphabet of ALPHABETS) {
    const runs = runsIn(text, alphabet, Math.ceil((bytes * 8) / alphabet.bits))
    if (runs.length > 0) all.push({ alphabet, runs })
  }
  return all
}

/** Beginning and end of each run that is long enough, in turn. */
function runsIn(text: Uint8Array, { values }: Alphabet, shortest: number): number[] {
  const runs: number[] = []
  // No run that is long enough lies between two places so far apart: most of a text is not looked at.
  for (let at = shortest - 1, before = 0; at < text.length; at += shortest) {
    if (values[text[at] ?? 0] === OUTSIDE) {
      before = at + 1
      continue
    }
    let start = at
    while (start > before && values[text[start - 1] ?? 0] !== OUTSIDE) start--
    while (start < text.length && values[text[start] ?? 0] === BETWEEN) start++
    let length = 0
    let end = start
    for (; end < text.length; end++) {
      const value = values[text[end] ?? 0] ?? OUTSIDE
      if (value < BETWEEN) length++
      else if (value === OUTSIDE) break
    }
    if (length >= shortest) runs.push(start, end)
    at = end
    before = end + 1
  }
  return runs
}

/** What the runs stand for, one after the other, read from each character that a byte may begin at. Linear time. */
export function decodedRuns(text: Uint8Array, { alphabet, runs }: EncodedRuns): DecodedRuns[] {
  const { bits, phases } = alphabet
  let most = 0
  for (let run = 0; run < runs.length; run += 2) most += (((runs[run + 1] ?? 0) - (runs[run] ?? 0)) * bits) >> 3
  const read = readEach(text, runs, alphabet, Buffer.allocUnsafe(most * phases), most)
  return read.map((bytes, phase) => {
    let places: Places | undefined
    return {
      bytes,
      placeOf(from, to) {
        // Nearly always nothing is found, and nobody asks where.
        places ??= placesOf(text, runs, alphabet, phase, bytes.length)
        return [places.first[from] ?? 0, (places.last[to - 1] ?? 0) + 1]
      },
    }
  })
}

/** Reads the runs in each phase, `most` bytes of `into` for each. */
function readEach(
  text: Uint8Array,
  runs: readonly number[],
  { values, bits, phases }: Alphabet,
  into: Buffer,
  most: number,
): Buffer[] {
  const ends = Array.from({ length: phases }, (_, phase) => phase * most)
  const held = new Uint8Array(longestOf(runs))
  for (let run = 0; run < runs.length; run += 2) {
    const end = runs[run + 1] ?? 0
    let count = 0
    for (let index = runs[run] ?? 0; index < end; index++) {
      const value = values[text[index] ?? 0] ?? OUTSIDE
      if (value < BETWEEN) held[count++] = value
    }
    const read = bits === 6 ? sextets : nibbles
    for (let phase = 0; phase < phases; phase++) ends[phase] = read(held, phase, count, into, ends[phase] ?? 0)
  }
  return ends.map((end, phase) => into.subarray(phase * most, end))
}

function longestOf(runs: readonly number[]): number {
  let longest = 0
  for (let run = 0; run < runs.length; run += 2) longest = Math.max(longest, (runs[run + 1] ?? 0) - (runs[run] ?? 0))
  return longest
}

/** Writes what characters of base64 stand for, four to three bytes; gives where it ended. */
function sextets(held: Uint8Array, from: number, count: number, into: Uint8Array, start: number): number {
  let at = start
  let index = from
  for (; index + 3 < count; index += 4) {
    const second = held[index + 1] ?? 0
    const third = held[index + 2] ?? 0
    into[at] = ((held[index] ?? 0) << 2) | (second >> 4)
    into[at + 1] = (second << 4) | (third >> 2)
    into[at + 2] = (third << 6) | (held[index + 3] ?? 0)
    at += 3
  }
  if (index + 1 < count) into[at++] = ((held[index] ?? 0) << 2) | ((held[index + 1] ?? 0) >> 4)
  if (index + 2 < count) into[at++] = ((held[index + 1] ?? 0) << 4) | ((held[index + 2] ?? 0) >> 2)
  return at
}

/** The same of hex digits. */
function nibbles(held: Uint8Array, from: number, count: number, into: Uint8Array, start: number): number {
  let at = start
  for (let index = from; index + 1 < count; index += 2) into[at++] = ((held[index] ?? 0) << 4) | (held[index + 1] ?? 0)
  return at
}

/** Where each byte was read: the first and the last of its characters. */
interface Places {
  readonly first: Uint32Array
  readonly last: Uint32Array
}

function placesOf(
  text: Uint8Array,
  runs: readonly number[],
  { values, bits: width }: Alphabet,
  phase: number,
  most: number,
): Places {
  const places = { first: new Uint32Array(most), last: new Uint32Array(most) }
  let count = 0
  for (let run = 0; run < runs.length; run += 2) {
    const end = runs[run + 1] ?? 0
    let bits = 0
    let skipped = 0
    let before = runs[run] ?? 0
    for (let index = before; index < end; index++) {
      const value = values[text[index] ?? 0] ?? OUTSIDE
      if (value === BETWEEN || skipped++ < phase) continue
      bits += width
      if (bits >= 8) {
        bits -= 8
        places.first[count] = before
        places.last[count] = index
        count++
      }
      before = index
    }
  }
  return places
}
