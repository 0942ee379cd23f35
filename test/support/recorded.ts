/** A copy of a value that knows which of its leaves were read. */
export interface Recorded<T> {
  readonly value: T
  /** Paths of unread leaves, with `[]` for any element of a list. */
  unread(): readonly string[]
  wasRead(leaf: string): boolean
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
 * turned into JSON: a key over the whole of an object is no use of a part of it. Functions are no leaves. To hand a leaf on in a
 * copy of its object (`{ ...whole }`) is a use of it, except for the objects at the path `copied`: their copies are followed, too.
 */
export function recorded<T>(value: T, copied?: string): Recorded<T> {
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
    const at = (name: string) => (path === '' ? name : `${path}.${name}`)
    const parts: Record<string, unknown> = {}
    // A copy asks for the descriptor of each part just before it takes it (ECMAScript, CopyDataProperties).
    let described: string | symbol | undefined
    const copy = new Proxy(parts, {
      get(_, name) {
        if (name === 'toJSON') return () => of
        if (!isQuiet) Reflect.get(of, name) // it may be a recording itself
        if (typeof name === 'string' && !isQuiet && !(path === copied && name === described)) read.add(at(name))
        described = undefined
        return Reflect.get(parts, name)
      },
      getOwnPropertyDescriptor(_, name) {
        described = name
        return Reflect.getOwnPropertyDescriptor(parts, name)
      },
    })
    known.set(of, copy)
    for (const [name, part] of Object.entries(of)) {
      parts[name] = copyOf(part, at(name))
      if (!hasParts(part) && typeof part !== 'function') leaves.add(at(name))
    }
    return copy
  }

  isQuiet = true
  try {
    return {
      value: copyOf(value, '') as T,
      unread: () => [...leaves].filter((leaf) => !read.has(leaf)).toSorted(),
      wasRead: (leaf) => read.has(leaf),
    }
  } finally {
    isQuiet = false
  }
}
