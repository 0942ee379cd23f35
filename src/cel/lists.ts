import { cel } from './library.ts'
import type { CelList, CelValue } from '@bufbuild/cel'
import { isOptional } from './optional.ts'
import { LIMITS, LimitReached, type Meter } from './limits.ts'

const LIST = Symbol.for('@bufbuild/cel/list')

/**
 * A list made by `+`, which `map` and `filter` call once per element: appending at the end shares the array, so that a
 * macro over n elements costs n. (The library nests one list in the next, and reading n of those recurses n deep.)
 */
class AppendedList {
  readonly [LIST] = {}
  readonly size: number
  readonly shared: CelValue[]

  constructor(shared: CelValue[]) {
    this.shared = shared
    this.size = shared.length
  }

  get(index: number): CelValue | undefined {
    return index < this.size ? this.shared[index] : undefined
  }

  *values(): IterableIterator<CelValue> {
    for (let index = 0; index < this.size; index++) {
      const value = this.shared[index]
      if (value !== undefined) yield value
    }
  }

  [Symbol.iterator](): IterableIterator<CelValue> {
    return this.values()
  }
}

/** `left + right`; pays for the elements that are copied. */
export function appendLists(left: CelList, right: CelList, meter: Meter): CelList {
  // Two lists may have been made from one: only the one that still ends where the array ends may go on in it.
  const extends_ = left instanceof AppendedList && left.shared.length === left.size
  meter.spend(right.size + (extends_ ? 0 : left.size))
  const shared = extends_ ? left.shared : [...left]
  for (const value of right) shared.push(value)
  return new AppendedList(shared) as unknown as CelList
}

/** CEL equality over what the base equality (for scalars, messages and types) knows; pays for the elements visited. */
export function equalValues(
  left: CelValue,
  right: CelValue,
  meter: Meter,
  scalars: (left: CelValue, right: CelValue) => boolean,
  depth = 0,
): boolean {
  if (depth > LIMITS.comparisonDepth) {
    meter.spend(LIMITS.steps + 1)
    throw new LimitReached()
  }
  const equal = (a: CelValue, b: CelValue) => equalValues(a, b, meter, scalars, depth + 1)
  if (cel().isCelList(left) && cel().isCelList(right)) {
    if (left.size !== right.size) return false
    const others = right[Symbol.iterator]()
    for (const value of left) {
      meter.spend(1)
      if (!equal(value, others.next().value as CelValue)) return false
    }
    return true
  }
  if (cel().isCelMap(left) && cel().isCelMap(right)) {
    if (left.size !== right.size) return false
    for (const [key, value] of left) {
      meter.spend(1)
      const other = right.get(key)
      if (other === undefined || !equal(value, other)) return false
    }
    return true
  }
  if (isOptional(left) || isOptional(right)) {
    if (!isOptional(left) || !isOptional(right)) return false
    const [a, b] = [left.value, right.value]
    return a === undefined || b === undefined ? a === b : equal(a, b)
  }
  if (typeof left === 'string' && typeof right === 'string' && left.length === right.length) {
    meter.spend(Math.floor(left.length / LIMITS.charactersPerStep))
  }
  return scalars(left, right)
}

/** Result of `valueAt` for a container or key type that CEL can't index. */
export const NO_OVERLOAD: unique symbol = Symbol('no overload')

/** `container[key]` with the types that CEL allows and no conversion between them; undefined when there is no such key. */
export function valueAt(container: CelValue, key: CelValue): CelValue | undefined | typeof NO_OVERLOAD {
  if (cel().isCelMap(container)) {
    const kind = cel().celType(key).name
    const allowed = kind === 'string' || kind === 'int' || kind === 'uint' || kind === 'bool' || kind === 'double'
    return allowed ? container.get(key as string) : NO_OVERLOAD
  }
  if (!cel().isCelList(container)) return NO_OVERLOAD
  const index = integerOf(key)
  return index === undefined ? NO_OVERLOAD : index < 0 ? undefined : container.get(index)
}

function integerOf(key: CelValue): number | undefined {
  if (typeof key === 'bigint') return Number(key)
  if (typeof key === 'number') return Number.isInteger(key) ? key : undefined
  return typeof key === 'object' && key !== null && 'value' in key && typeof key.value === 'bigint'
    ? Number(key.value)
    : undefined
}
