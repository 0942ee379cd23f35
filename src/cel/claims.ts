import type { CelList, CelMap, CelValue } from '@bufbuild/cel'
import type { Claims, ClaimValue } from '../core/index.ts'

// `@bufbuild/cel` recognises its lists and maps by these registered symbols. Its own map reports that a key whose value is
// null is absent, and its conversion reads `constructor` of the object, which claims do not have.
const LIST = Symbol.for('@bufbuild/cel/list')
const MAP = Symbol.for('@bufbuild/cel/map')

/** A claim as a CEL value: numbers are doubles, arrays and objects are views, nothing is copied. */
function claimToCel(value: ClaimValue): CelValue {
  if (typeof value !== 'object' || value === null) return value
  return isArray(value) ? listView(value) : claimsToCel(value)
}

/** Claims as a CEL map with string keys; `onRead` is called with each key that an expression asks for. */
export function claimsToCel(claims: Claims, onRead?: (key: string) => void): CelMap {
  return new ClaimMap(claims, onRead) as unknown as CelMap
}

function listView(array: readonly ClaimValue[]): CelList {
  return new ClaimList(array) as unknown as CelList
}

function isArray(value: ClaimValue): value is readonly ClaimValue[] {
  return Array.isArray(value)
}

class ClaimList {
  readonly [LIST] = {}
  readonly #array: readonly ClaimValue[]

  constructor(array: readonly ClaimValue[]) {
    this.#array = array
  }

  get size(): number {
    return this.#array.length
  }

  get(index: number): CelValue | undefined {
    const value = this.#array[index]
    return value === undefined ? undefined : claimToCel(value)
  }

  *values(): IterableIterator<CelValue> {
    for (const value of this.#array) yield claimToCel(value)
  }

  [Symbol.iterator](): IterableIterator<CelValue> {
    return this.values()
  }
}

class ClaimMap {
  readonly [MAP] = {}
  readonly #claims: Claims
  readonly #onRead: ((key: string) => void) | undefined
  #names: readonly string[] | undefined

  constructor(claims: Claims, onRead: ((key: string) => void) | undefined) {
    this.#claims = claims
    this.#onRead = onRead
  }

  get size(): number {
    return this.#keys().length
  }

  get(key: CelValue): CelValue | undefined {
    if (!this.has(key)) return undefined
    const value = this.#claims[key]
    return value === undefined ? undefined : claimToCel(value)
  }

  has(key: CelValue): key is string {
    if (typeof key !== 'string') return false
    this.#onRead?.(key)
    return Object.hasOwn(this.#claims, key)
  }

  keys(): IterableIterator<string> {
    return this.#keys().values()
  }

  *values(): IterableIterator<CelValue> {
    for (const [, value] of this.entries()) yield value
  }

  *entries(): IterableIterator<[string, CelValue]> {
    for (const name of this.#keys()) yield [name, claimToCel(this.#claims[name] ?? null)]
  }

  forEach(callback: (value: CelValue, key: string, map: unknown) => void): void {
    for (const [name, value] of this.entries()) callback(value, name, this)
  }

  [Symbol.iterator](): IterableIterator<[string, CelValue]> {
    return this.entries()
  }

  #keys(): readonly string[] {
    return (this.#names ??= Object.keys(this.#claims))
  }
}
