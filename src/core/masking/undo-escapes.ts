/** A text without one layer of escapes. */
export interface Unescaped {
  readonly text: string
  /** Maps a range of the result to its range in the original text; ends are exclusive. */
  placeOf(from: number, to: number): [number, number]
}

const BACKSLASH = 0x5c
const QUOTE = 0x22
const PERCENT = 0x25
const AMPERSAND = 0x26
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  equals: '=',
  gt: '>',
  lt: '<',
  plus: '+',
  quot: '"',
  sol: '/',
}
/** Escapes of more than one character after the backslash, percent sign or ampersand. */
const CODE_UNIT = /u\{([\da-f]{1,6})\}|u([\da-f]{4})|x([\da-f]{2})/iy
const PERCENT_ENCODED = /%([0-7][\da-f])|(?:%[c-f][\da-f])(?:%[89ab][\da-f]){1,3}/iy
const ENTITY = /&(?:#x([\da-f]{1,6})|#(\d{1,7})|(amp|apos|equals|gt|lt|plus|quot|sol));/iy

/**
 * Undoes one layer of the escapes of JSON and programming languages (`\u002B`, `\x2b`, `\u{2b}`, `\/`), URLs (`%2B`, UTF-8 too)
 * and HTML (`&#43;`, `&#x2B;`, `&amp;`), in linear time; undefined for a text without any.
 */
export function undoEscapes(text: string): Unescaped | undefined {
  if (!text.includes('\\') && !text.includes('%') && !text.includes('&')) return undefined
  const undone = read(text, undefined)
  let units: number[] | undefined
  return {
    text: undone,
    placeOf(from, to) {
      // Most text has no escape.
      if (units === undefined) read(text, (units = []))
      return [placeOf(units, from)[0], placeOf(units, to - 1)[1]]
    },
  }
}

/** `units` receives for each decoded unit its position in the result, and the begin and end of its escape. */
function read(text: string, units: number[] | undefined): string {
  // An escape is never shorter than the decoded text.
  const result = new Uint16Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code !== BACKSLASH && code !== PERCENT && code !== AMPERSAND) {
      result[length++] = code
      continue
    }
    const next = text.charCodeAt(at + 1)
    const begin = at
    const place = length
    if (code === BACKSLASH && (next === QUOTE || next === BACKSLASH)) {
      result[length++] = next
      at += 1
    } else {
      const escape = code === BACKSLASH ? afterBackslash(text, at) : longer(code, text, at)
      if (escape === undefined) {
        result[length++] = code
        continue
      }
      for (let unit = 0; unit < escape.character.length; unit++) result[length++] = escape.character.charCodeAt(unit)
      at += escape.length - 1
    }
    if (units !== undefined) for (let unit = place; unit < length; unit++) units.push(unit, begin, at + 1)
  }
  return Buffer.from(result.buffer, 0, 2 * length).toString('utf16le')
}

interface Escape {
  readonly character: string
  /** Characters of the escape. */
  readonly length: number
}

function afterBackslash(text: string, at: number): Escape | undefined {
  const next = text[at + 1]
  if (next === undefined) return undefined
  const control = CONTROLS[next]
  if (control !== undefined) return { character: control, length: 2 }
  if (next !== 'u' && next !== 'x') return /[\da-z]/i.test(next) ? undefined : { character: next, length: 2 }
  CODE_UNIT.lastIndex = at + 1
  const match = CODE_UNIT.exec(text)
  return match === null ? undefined : escapeOf(match[1] ?? match[2] ?? match[3], 16, match[0].length + 1)
}

function longer(code: number, text: string, at: number): Escape | undefined {
  const pattern = code === PERCENT ? PERCENT_ENCODED : ENTITY
  pattern.lastIndex = at
  const match = pattern.exec(text)
  if (match === null) return undefined
  const [{ length }, hex, decimal, name] = match
  if (name !== undefined) return { character: ENTITIES[name.toLowerCase()] ?? '', length }
  if (hex !== undefined) return escapeOf(hex, 16, length)
  if (decimal !== undefined) return escapeOf(decimal, 10, length)
  return { character: Buffer.from(match[0].replaceAll('%', ''), 'hex').toString('utf8'), length }
}

function escapeOf(digits: string | undefined, base: number, length: number): Escape | undefined {
  const point = Number.parseInt(digits ?? '', base)
  return point > 0x10_ffff ? undefined : { character: String.fromCodePoint(point), length }
}

/** Begin and end, in the original text, of the unit at this position of the result. */
function placeOf(units: readonly number[], at: number): [number, number] {
  let low = 0
  let high = units.length / 3
  while (low < high) {
    const middle = (low + high) >> 1
    if ((units[3 * middle] ?? 0) <= at) low = middle + 1
    else high = middle
  }
  if (low === 0) return [at, at + 1]
  const [place = 0, begin = 0, end = 0] = units.slice(3 * (low - 1), 3 * low)
  const plain = end + at - place - 1
  return at === place ? [begin, end] : [plain, plain + 1]
}
