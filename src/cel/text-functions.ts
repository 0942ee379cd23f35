import { createRequire } from 'node:module'
import type * as Extensions from '@bufbuild/cel/ext'
import type { CelValue } from '@bufbuild/cel'
import { elementsOf, intOf, listOf, payFor, payForAll, textOf, type Definition } from './define.ts'
import { cel } from './library.ts'
import { LIMITS, type Meter } from './limits.ts'

const load = createRequire(import.meta.url)
/** Digits after the point that `format` may be asked for. */
const LONGEST_PRECISION = 100

/** Pays for looking for `part` in `text`, which in the worst case compares each character with each. */
function payForSearch(text: string, part: string, meter: Meter): void {
  payFor(text.length + part.length, meter)
  meter.spend(Math.floor((text.length * part.length) / (LIMITS.charactersPerStep * LIMITS.matchingPerStep)))
}

/** Positions count characters, not the halves of those that take two units. */
const charactersOf = (value: CelValue | undefined, meter: Meter): string[] => Array.from(textOf(value, meter))

function within(index: number, most: number): number {
  if (index < 0 || index > most) throw new Error('index out of bounds')
  return index
}

function find(meter: Meter, [text, part, from]: readonly CelValue[], last: boolean): CelValue {
  const [whole, wanted] = [textOf(text, meter), textOf(part, meter)]
  payForSearch(whole, wanted, meter)
  const characters = from === undefined ? undefined : Array.from(whole)
  const start = characters && characters.slice(0, within(intOf(from), characters.length)).join('').length
  const unit = last ? whole.lastIndexOf(wanted, start ?? Infinity) : whole.indexOf(wanted, start ?? 0)
  return BigInt(unit < 0 ? -1 : Array.from(whole.slice(0, unit)).length)
}

function split(meter: Meter, [text, separator, most]: readonly CelValue[]): CelValue {
  const [whole, by] = [textOf(text, meter), textOf(separator, meter)]
  payForSearch(whole, by, meter)
  const limit = most === undefined ? -1 : intOf(most)
  if (limit === 0) return listOf([])
  const parts = by === '' ? Array.from(whole) : whole.split(by)
  meter.spend(parts.length)
  if (limit < 0 || parts.length <= limit) return listOf(parts)
  return listOf([...parts.slice(0, limit - 1), parts.slice(limit - 1).join(by)])
}

function replace(meter: Meter, [text, old, by, most]: readonly CelValue[]): CelValue {
  const [whole, wanted, instead] = [textOf(text, meter), textOf(old, meter), textOf(by, meter)]
  payForSearch(whole, wanted, meter)
  const limit = most === undefined ? -1 : intOf(most)
  const parts = wanted === '' ? ['', ...Array.from(whole), ''] : whole.split(wanted)
  const times = limit < 0 ? parts.length - 1 : Math.min(limit, parts.length - 1)
  payFor(whole.length + times * instead.length, meter)
  meter.spend(Math.floor(parts.length / LIMITS.charactersPerStep))
  return (
    parts.slice(0, times + 1).join(instead) +
    parts
      .slice(times + 1)
      .map((part) => wanted + part)
      .join('')
  )
}

function join(meter: Meter, [list, separator = '']: readonly CelValue[]): CelValue {
  const by = textOf(separator, meter)
  const parts = elementsOf(list, meter).map((part) => textOf(part, meter))
  payFor(by.length * parts.length, meter)
  return parts.join(by)
}

function substring(meter: Meter, [text, from, to]: readonly CelValue[]): CelValue {
  const characters = charactersOf(text, meter)
  const end = to === undefined ? characters.length : within(intOf(to), characters.length)
  return characters.slice(within(intOf(from), end), end).join('')
}

/** As the library formats; paid for before, and with a bounded number of digits. */
function format(meter: Meter, [text, values]: readonly CelValue[]): CelValue {
  const pattern = textOf(text, meter)
  if (values === undefined || !cel().isCelList(values)) throw new Error('expected a list')
  payForAll(values, meter)
  for (const [, digits] of pattern.matchAll(/%\.(\d+)/g)) {
    if (digits !== undefined && (digits.length > 3 || Number(digits) > LONGEST_PRECISION))
      throw new Error('too many digits')
  }
  const { strings } = load('@bufbuild/cel/ext') as typeof Extensions
  const formatted = strings.find(({ name }) => name === 'format')?.call(0, pattern, [values])
  if (typeof formatted !== 'string') throw new Error('cannot be formatted')
  return formatted
}

const ascii =
  (from: RegExp, change: (letters: string) => string) =>
  (meter: Meter, [text]: readonly CelValue[]) =>
    textOf(text, meter).replace(from, change)

/** The extension `strings` of CEL (cel-go ext/strings, version 4). */
export function textFunctions(): readonly Definition[] {
  const { STRING, INT, DYN } = cel().CelScalar
  const LIST = cel().listType(DYN)
  const on = (name: string, args: Definition['args'], result: Definition['result'], run: Definition['run']) => ({
    name,
    target: STRING,
    args,
    result,
    run,
  })
  return [
    on('charAt', [INT], STRING, (meter, [text, at]) => {
      const characters = charactersOf(text, meter)
      return characters[within(intOf(at), characters.length)] ?? ''
    }),
    on('indexOf', [STRING], INT, (meter, args) => find(meter, args, false)),
    on('indexOf', [STRING, INT], INT, (meter, args) => find(meter, args, false)),
    on('lastIndexOf', [STRING], INT, (meter, args) => find(meter, args, true)),
    on('lastIndexOf', [STRING, INT], INT, (meter, args) => find(meter, args, true)),
    on(
      'lowerAscii',
      [],
      STRING,
      ascii(/[A-Z]+/g, (letters) => letters.toLowerCase()),
    ),
    on(
      'upperAscii',
      [],
      STRING,
      ascii(/[a-z]+/g, (letters) => letters.toUpperCase()),
    ),
    on('replace', [STRING, STRING], STRING, replace),
    on('replace', [STRING, STRING, INT], STRING, replace),
    on('split', [STRING], LIST, split),
    on('split', [STRING, INT], LIST, split),
    on('substring', [INT], STRING, substring),
    on('substring', [INT, INT], STRING, substring),
    on('trim', [], STRING, (meter, [text]) => trim(textOf(text, meter))),
    on('reverse', [], STRING, (meter, [text]) => charactersOf(text, meter).toReversed().join('')),
    on('format', [LIST], STRING, format),
    { name: 'join', target: LIST, args: [], result: STRING, run: join },
    { name: 'join', target: LIST, args: [STRING], result: STRING, run: join },
    { name: 'strings.quote', args: [STRING], result: STRING, run: (meter, [text]) => quote(textOf(text, meter)) },
  ]
}

const BLANK = /\p{White_Space}/u

/** Without blanks as Unicode has them; JavaScript takes others for such. No character at the ends is looked at twice. */
function trim(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && BLANK.test(text[start] ?? '')) start += 1
  while (start < end && BLANK.test(text[end - 1] ?? '')) end -= 1
  return text.slice(start, end)
}

const QUOTED: ReadonlyMap<string, string> = new Map([
  ...Object.entries({ '\x07': 'a', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v' }),
  ['"', '"'],
  ['\\', '\\'],
])

const quote = (text: string): string =>
  `"${Array.from(text, (character) => (QUOTED.has(character) ? `\\${QUOTED.get(character) ?? ''}` : character)).join('')}"`
