/** A field of an object in a JSON text: from its name to the end of its value, as byte offsets. */
interface Field {
  readonly name: string
  readonly start: number
  readonly valueStart: number
  readonly end: number
}

const [QUOTE, BACKSLASH, COMMA, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [...Buffer.from(String.raw`"\,{}[]`)]
const SPACES: ReadonlySet<number> = new Set(Buffer.from(' \t\r\n'))

/**
 * Removes fields from `params` of a JSON-RPC message, and leaves all other bytes as they are: numbers keep their digits.
 * `json` must be valid JSON; without `params` it is returned unchanged.
 */
export function removeParams(json: Buffer, names: ReadonlySet<string>): Buffer {
  const start = skipSpace(json, 0)
  const params = fieldsOf(json, start).findLast(({ name }) => name === 'params')
  if (params === undefined || json[params.valueStart] !== OPEN) return json
  const fields = fieldsOf(json, params.valueStart)
  const kept = fields.filter(({ name }) => !names.has(name))
  const parts = kept.map(({ start: from, end }) => json.subarray(from, end))
  const inner = parts.flatMap((part, index) => (index === 0 ? [part] : [Buffer.of(COMMA ?? 0), part]))
  return Buffer.concat([json.subarray(0, params.valueStart + 1), ...inner, json.subarray(params.end - 1)])
}

/**
 * Sets a field of an object in a JSON text, and leaves all other bytes as they are. `path`: names from the outermost
 * object to the field; missing objects are added, other values on the way are replaced. `json` must be a valid object.
 */
export function setField(json: Buffer, [name = '', ...inner]: readonly string[], value: unknown): Buffer {
  const start = skipSpace(json, 0)
  const fields = fieldsOf(json, start)
  const found = fields.findLast((field) => field.name === name)
  const current = found === undefined ? EMPTY : json.subarray(found.valueStart, found.end)
  const next =
    inner.length === 0
      ? Buffer.from(JSON.stringify(value))
      : setField(current[0] === OPEN ? current : EMPTY, inner, value)
  if (found !== undefined) return Buffer.concat([json.subarray(0, found.valueStart), next, json.subarray(found.end)])
  const before = Buffer.from(`${JSON.stringify(name)}:`)
  const after = fields.length === 0 ? [] : [Buffer.of(COMMA ?? 0)]
  return Buffer.concat([json.subarray(0, start + 1), before, next, ...after, json.subarray(start + 1)])
}

const EMPTY = Buffer.from('{}')

/** The fields of the object that begins at `at`; none if another value does. */
function fieldsOf(json: Buffer, at: number): Field[] {
  const fields: Field[] = []
  if (json[at] !== OPEN) return fields
  let next = skipSpace(json, at + 1)
  while (next < json.length && json[next] === QUOTE) {
    const nameEnd = endOfString(json, next)
    const valueStart = skipSpace(json, skipSpace(json, nameEnd) + 1)
    const end = endOfValue(json, valueStart)
    fields.push({ name: nameIn(json.subarray(next, nameEnd)), start: next, valueStart, end })
    next = skipSpace(json, end)
    if (json[next] === COMMA) next = skipSpace(json, next + 1)
  }
  return fields
}

const nameIn = (quoted: Buffer): string => {
  const name: unknown = JSON.parse(quoted.toString())
  return typeof name === 'string' ? name : ''
}

function skipSpace(json: Buffer, at: number): number {
  let next = at
  while (next < json.length && SPACES.has(json[next] ?? 0)) next++
  return next
}

/** The offset after the string that begins at `at`. */
function endOfString(json: Buffer, at: number): number {
  let next = at + 1
  while (next < json.length && json[next] !== QUOTE) next += json[next] === BACKSLASH ? 2 : 1
  return next + 1
}

/** The offset after the value that begins at `at`. */
function endOfValue(json: Buffer, at: number): number {
  let depth = 0
  let next = at
  while (next < json.length) {
    const byte = json[next]
    if (byte === QUOTE) next = endOfString(json, next)
    else {
      if (depth === 0 && (byte === COMMA || byte === CLOSE || byte === CLOSE_LIST || SPACES.has(byte ?? 0))) break
      if (byte === OPEN || byte === OPEN_LIST) depth++
      if (byte === CLOSE || byte === CLOSE_LIST) depth--
      next++
    }
    if (depth === 0 && (byte === QUOTE || byte === CLOSE || byte === CLOSE_LIST)) break
  }
  return next
}
