/** Calls that only the parser and the checker write into an expression; no name with `@` can be typed. */
export const RANGE = '@range'
export const INDEX = '@index'

/** Functions of optional values. */
export const OPTIONAL = Object.freeze({
  of: 'optional.of',
  none: 'optional.none',
  ofNonZeroValue: 'optional.ofNonZeroValue',
  unwrap: 'optional.unwrap',
  /** `a.?b`, `a[?b]`, and what is selected from these. */
  at: '@optionalAt',
  /** `[?a, b]` of a list of optional values. */
  list: '@optionalList',
  /** `{?k: v}` of keys and optional values in turn. */
  map: '@optionalMap',
})

/** The names before the dot of functions that belong to a library. */
export const LIBRARIES: ReadonlySet<string> = new Set(['cel', 'sets', 'lists', 'math', 'optional', 'strings'])
