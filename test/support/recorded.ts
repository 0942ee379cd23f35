/** A copy of a value that knows which of its leaves were read. */
export interface Recorded<T> {
  readonly value: T
  /** Paths of the leaves that nobody read, with `[]` for any element of a list. */
  unread(): readonly string[]
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const hasParts = (part: unknown): boolean =>
  typeof part === 'object' && part !== null && (Array.isArray(part) ? part.some(hasParts) : isPlain(part))

/** Copies of recordings are made without reading them. */
let isQuiet = false

/**
 * Copies plain objects and lists of `value`; anything else in it stays what it is. A list of leaves is a leaf, and so is what is
 * turned into JSON: a key over the whole of an object is no use of a part of it.
 */
export function recorded<T>(value: T): Recorded<T> {
  const leaves = new Set<string>()
  const read = new Set<string>()
  const known = new Map<object, object>()

  const copyOf = (of: unknown, path: string): unknown => {
    if (typeof of !== 'object' || of === null || !(Array.isArray(of) || isPlain(of))) return of
    const seen = known.get(of)
    if (seen !== undefined) return seen
    if (Array.isArray(of)) {
      const list: unknown[] = []
      known.set(of, list)
      for (const element of of) list.push(copyOf(element, `${path}[]`))
      return list
    }
    const copy = {}
    known.set(of, copy)
    for (const [name, part] of Object.entries(of)) {
      const at = path === '' ? name : `${path}.${name}`
      const inner = copyOf(part, at)
      if (!hasParts(part)) leaves.add(at)
      Object.defineProperty(copy, name, {
        enumerable: true,
        get: () => {
          if (!isQuiet) read.add(at)
          return inner
        },
      })
    }
    Object.defineProperty(copy, 'toJSON', { value: () => of })
    return copy
  }

  isQuiet = true
  try {
    return {
      value: copyOf(value, '') as T,
      unread: () => [...leaves].filter((leaf) => !read.has(leaf)).toSorted(),
    }
  } finally {
    isQuiet = false
  }
}
