import { BETWEEN, type EncodedRuns } from './encoded-runs.ts'
import { QUANTA_OF_PIECE, type PieceIndex } from './secret-pieces.ts'

/**
 * Three bytes (a quantum: four characters of base64, six hex digits) are looked at from each character on. What begins so
 * many characters after each other is one reading of the run, byte after byte.
 */
const QUANTUM_BITS = 24
const QUANTUM_BYTES = 3
const QUANTUM = 0xff_ffff
const NOT_ASCII = 0x80_8080
/** Bytes of a text at the edges of what is known of it: in a quantum that it does not fill. */
const EDGE = QUANTUM_BYTES - 1
/** Five characters of base64, seven hex digits: three bytes, and what may follow that is no whole byte. */
const HELD = 0x3fff_ffff

/**
 * False when what the runs stand for holds nothing of the secrets and no text of `text` printable characters, which may be
 * encoded once more: then nobody needs to decode them. Reads them together as `decodedRuns` does, one after the other.
 * Never false where something is.
 */
export function mayHold(
  text: Uint8Array,
  { alphabet, runs }: EncodedRuns,
  secrets: readonly PieceIndex[],
  printable: number,
): boolean {
  const { values, bits } = alphabet
  const readings = new Readings(QUANTUM_BITS / bits, secrets, printable)
  // Most of what is no encoding of a text reads as bytes that are not ASCII.
  const ruledOut = secrets.every(({ isAscii }) => isAscii) ? NOT_ASCII : 0
  for (let run = 0; run < runs.length; run += 2) {
    const end = runs[run + 1] ?? 0
    let held = 0
    let count = 0
    for (let index = runs[run] ?? 0; index < end; index++) {
      const value = values[text[index] ?? 0] ?? BETWEEN
      if (value >= BETWEEN) continue
      held = ((held << bits) | value) & HELD
      count++
      if ((held & ruledOut) === 0 && readings.has(held & QUANTUM, count)) return true
    }
    if (readings.hasAtEnd(held, count, bits)) return true
  }
  return false
}

/** What was found so far in each reading. */
class Readings {
  readonly #readings: number
  readonly #secrets: readonly PieceIndex[]
  readonly #short: readonly PieceIndex[]
  readonly #most: number
  /** How many characters of the run were read with the last quantum that may be of a text. */
  readonly #last: number[]
  /** Quanta of secrets in a row. */
  readonly #quanta: number[]
  /** Bytes in a row that may be printable. */
  readonly #printable: number[]

  constructor(readings: number, secrets: readonly PieceIndex[], printable: number) {
    this.#readings = readings
    this.#secrets = secrets
    this.#short = secrets.filter(({ hasShort }) => hasShort)
    this.#most = printable - EDGE
    this.#last = []
    this.#quanta = []
    this.#printable = []
    for (let reading = 0; reading < readings; reading++) {
      this.#last.push(reading)
      this.#quanta.push(0)
      this.#printable.push(EDGE)
    }
  }

  /** Takes the quantum that ends with so many characters of a run. */
  has(quantum: number, count: number): boolean {
    const readings = this.#readings
    if (count < readings) return false
    const reading = count % readings
    const goesOn = this.#last[reading] === count - readings
    this.#last[reading] = count
    const isOfSecret = isMarked(this.#secrets, quantum)
    const quanta = isOfSecret ? (goesOn ? (this.#quanta[reading] ?? 0) : 0) + 1 : 0
    this.#quanta[reading] = quanta
    if (quanta >= QUANTA_OF_PIECE || (isOfSecret && isShort(this.#short, quantum))) return true
    const before = goesOn ? (this.#printable[reading] ?? 0) : EDGE
    const printable = isPrintable(quantum) ? before + QUANTUM_BYTES : EDGE
    this.#printable[reading] = printable
    return printable >= this.#most
  }

  /** What a run ends with, and the next one goes on with. */
  hasAtEnd(held: number, count: number, bits: number): boolean {
    for (let reading = 0; reading < this.#readings; reading++) {
      const left = count - reading
      const goesOn = this.#last[reading] === count - (left % this.#readings)
      this.#last[reading] = reading
      // A piece that goes on in the next run may have one quantum less in a row.
      const quanta = (goesOn ? (this.#quanta[reading] ?? 0) : 0) + 1
      this.#quanta[reading] = quanta
      // The last three bytes, which are a quantum of the secret in none of the two.
      const last = (held >> ((left * bits) & 7)) & QUANTUM
      const unread = ((left * bits) >> 3) % QUANTUM_BYTES
      const printable = (goesOn ? (this.#printable[reading] ?? 0) : EDGE) + unread
      this.#printable[reading] = printable
      if (quanta >= QUANTA_OF_PIECE || printable >= this.#most || isShort(this.#short, last)) return true
    }
    return false
  }
}

function isMarked(secrets: readonly PieceIndex[], quantum: number): boolean {
  for (let at = 0; at < secrets.length; at++) if (secrets[at]?.isMarked(quantum) === true) return true
  return false
}

function isShort(secrets: readonly PieceIndex[], quantum: number): boolean {
  for (let at = 0; at < secrets.length; at++) if (secrets[at]?.isInShort(quantum) === true) return true
  return false
}

/** Whether each of three bytes is a printable character of ASCII or white space. */
const isPrintable = (quantum: number): boolean =>
  PRINTABLE[quantum >> 16] === 1 && PRINTABLE[(quantum >> 8) & 0xff] === 1 && PRINTABLE[quantum & 0xff] === 1

const PRINTABLE = Uint8Array.from({ length: 256 }, (_, byte) =>
  (byte >= 0x20 && byte < 0x7f) || (byte >= 9 && byte <= 13) ? 1 : 0,
)
