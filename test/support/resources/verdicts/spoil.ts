type Json = { [name: string]: unknown }
type Path = readonly (string | number)[]

/** A copy of an object with one thing in it that is not as it was. */
export interface Spoiled {
  readonly what: string
  readonly object: Json
}

const ABSENT = Symbol('absent')

/** Replacements for a value of each type: other types, nothing, and characters that JavaScript and RE2 class differently. */
const FOR_ANY: readonly (readonly [string, unknown])[] = [
  ['absent', ABSENT],
  ['null', null],
]
const FOR_TEXT: readonly (readonly [string, (text: string) => unknown])[] = [
  ['a number', () => 7],
  ['nothing', () => ''],
  ['a list', (text) => [text]],
  ['a no-break space inside', (text) => `${text.slice(0, -1)}\u00A0${text.slice(-1)}`],
  ['an ideographic space at the end', (text) => `${text}\u3000`],
  ['a line separator', (text) => `${text}\u2028`],
  ['a line break at the end', (text) => `${text}\n`],
  ['256 astral characters', () => '😀'.repeat(256)],
]
const FOR_NUMBER: readonly (readonly [string, unknown])[] = [
  ['a text', '7'],
  ['a fraction', 1.5],
  ['minus one', -1],
  ['zero', 0],
  ['2^31', 2_147_483_648],
  ['far beyond', 1e300],
]
const FOR_FLAG: readonly (readonly [string, unknown])[] = [
  ['a text', 'true'],
  ['a number', 1],
]
const FOR_LIST: readonly (readonly [string, (list: readonly unknown[]) => unknown])[] = [
  ['empty', () => []],
  ['a map', () => ({})],
  ['a null in it', (list) => [...list, null]],
]
const FOR_MAP: readonly (readonly [string, (map: Json) => unknown])[] = [
  ['empty', () => ({})],
  ['a text', () => 'x'],
  ['a list', () => []],
  ['an unknown field', (map) => ({ ...map, notKnown: 1 })],
  ['an unknown field that is null', (map) => ({ ...map, notKnown: null })],
]

/** Every part of `object.spec` spoiled in every way of its sort, each field once over all objects that share `seen`. */
export function* spoil(object: Json, seen: Set<string>): Generator<Spoiled> {
  for (const path of pathsOf(object['spec'], ['spec'])) {
    const field = path.map((step) => (typeof step === 'number' ? '[]' : step)).join('.')
    const value = valueAt(object, path)
    const sort = sortOf(value)
    if (seen.has(`${field} ${sort}`)) continue
    seen.add(`${field} ${sort}`)
    for (const [what, other] of [...FOR_ANY, ...variantsOf(value)])
      yield { what: `${field}: ${what}`, object: withValue(object, path, other) }
  }
}

const sortOf = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value)

function variantsOf(value: unknown): (readonly [string, unknown])[] {
  if (typeof value === 'string') return FOR_TEXT.map(([what, change]) => [what, change(value)])
  if (typeof value === 'number') return [...FOR_NUMBER]
  if (typeof value === 'boolean') return [...FOR_FLAG]
  if (Array.isArray(value)) return FOR_LIST.map(([what, change]) => [what, change(value)])
  return FOR_MAP.map(([what, change]) => [what, change(value as Json)])
}

function* pathsOf(value: unknown, path: Path): Generator<Path> {
  yield path
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value))
    yield* pathsOf(member, [...path, Array.isArray(value) ? Number(name) : name])
}

const valueAt = (object: unknown, path: Path): unknown =>
  path.reduce((inner, step) => (inner as { [step: string]: unknown })[step], object)

/** A copy of `object` with another value at `path`. */
export function withValue(object: Json, path: Path, value: unknown): Json {
  const copy = structuredClone(object)
  const last = path.at(-1)
  const parent = valueAt(copy, path.slice(0, -1)) as { [step: string | number]: unknown }
  if (last === undefined) throw new RangeError('an empty path')
  if (value !== ABSENT) parent[last] = value
  else if (Array.isArray(parent)) parent.splice(Number(last), 1)
  else delete parent[last]
  return copy
}
