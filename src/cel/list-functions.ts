import type { CelValue } from '@bufbuild/cel'
import { elementsOf, intOf, listOf, payFor, type Definition } from './define.ts'
import { cel } from './library.ts'
import { LIMITS, type Meter } from './limits.ts'
import { equalValues } from './lists.ts'
import { compareValues } from './numbers.ts'
import { optionalOf } from './optional.ts'
import { pairFunctions } from './pair-functions.ts'

/** Equality of scalars, as the library has it. */
type Equal = (left: CelValue, right: CelValue) => boolean

/** A comparison sort makes about so many comparisons. */
const payForSorting = (size: number, meter: Meter): void => meter.spend(Math.ceil(size * Math.log2(size + 1)))

function sortedBy(meter: Meter, elements: readonly CelValue[], keys: readonly CelValue[]): CelValue {
  if (keys.length !== elements.length) throw new Error('not as many keys as elements')
  payForSorting(keys.length, meter)
  // Long texts cost as often as they are compared.
  for (const key of keys) if (typeof key === 'string') payFor(key.length * 16, meter)
  const pairs = keys.map((key, index) => [key, elements[index] ?? null] as const)
  for (const [key] of pairs) compareValues(key, pairs[0]?.[0] ?? null)
  return listOf(pairs.toSorted(([left], [right]) => compareValues(left, right)).map(([, element]) => element))
}

function slice(meter: Meter, [list, from, to]: readonly CelValue[]): CelValue {
  const elements = elementsOf(list, meter)
  const [start, end] = [intOf(from), intOf(to)]
  if (start < 0 || end > elements.length || start > end) throw new Error('index out of bounds')
  return listOf(elements.slice(start, end))
}

function flatten(meter: Meter, list: CelValue | undefined, depth: number): CelValue[] {
  if (depth < 0) throw new Error('the depth is negative')
  return elementsOf(list, meter).flatMap((element) =>
    depth > 0 && cel().isCelList(element) ? flatten(meter, element, depth - 1) : [element],
  )
}

function sum(meter: Meter, [list]: readonly CelValue[]): CelValue {
  const elements = elementsOf(list, meter)
  if (elements.every((element) => typeof element === 'bigint')) {
    const total = elements.reduce((left, right) => left + right, 0n)
    if (BigInt.asIntN(64, total) !== total) throw new Error('the sum does not fit')
    return total
  }
  return elements.reduce<number>((total, element) => {
    if (typeof element !== 'number') throw new Error('expected numbers of one type')
    return total + element
  }, 0)
}

/** Functions that compare elements with each other. */
function comparing(equal: Equal): readonly Definition[] {
  const { BOOL, INT, DYN } = cel().CelScalar
  const LIST = cel().listType(DYN)
  const same = (left: CelValue, right: CelValue, meter: Meter): boolean => {
    meter.spend(1)
    return equalValues(left, right, meter, equal)
  }
  const holds = (elements: readonly CelValue[], wanted: CelValue, meter: Meter): boolean =>
    elements.some((element) => same(element, wanted, meter))
  const contains = (meter: Meter, [outer, inner]: readonly CelValue[]): boolean => {
    const elements = elementsOf(outer, meter)
    return elementsOf(inner, meter).every((element) => holds(elements, element, meter))
  }
  const find = (meter: Meter, [list, wanted = null]: readonly CelValue[], last: boolean): CelValue => {
    const elements = elementsOf(list, meter)
    const matches = (element: CelValue) => same(element, wanted, meter)
    return BigInt(last ? elements.findLastIndex(matches) : elements.findIndex(matches))
  }
  return [
    { name: 'sets.contains', args: [LIST, LIST], result: BOOL, run: contains },
    {
      name: 'sets.equivalent',
      args: [LIST, LIST],
      result: BOOL,
      run: (meter, [left = null, right = null]) => contains(meter, [left, right]) && contains(meter, [right, left]),
    },
    {
      name: 'sets.intersects',
      args: [LIST, LIST],
      result: BOOL,
      run: (meter, [left, right]) => {
        const elements = elementsOf(left, meter)
        return elementsOf(right, meter).some((element) => holds(elements, element, meter))
      },
    },
    {
      name: 'distinct',
      target: LIST,
      args: [],
      result: LIST,
      run(meter, [list]) {
        const found: CelValue[] = []
        for (const element of elementsOf(list, meter)) if (!holds(found, element, meter)) found.push(element)
        return listOf(found)
      },
    },
    { name: 'indexOf', target: LIST, args: [DYN], result: INT, run: (meter, args) => find(meter, args, false) },
    { name: 'lastIndexOf', target: LIST, args: [DYN], result: INT, run: (meter, args) => find(meter, args, true) },
  ]
}

/** The extensions `sets` and `lists` of CEL (cel-go ext), and the functions of lists that Kubernetes adds. */
export function listFunctions(equal: Equal): readonly Definition[] {
  const { BOOL, INT, DYN } = cel().CelScalar
  const LIST = cel().listType(DYN)
  const on = (name: string, args: Definition['args'], result: Definition['result'], run: Definition['run']) => ({
    name,
    target: LIST,
    args,
    result,
    run,
  })
  const best =
    (wanted: -1 | 1) =>
    (meter: Meter, [list]: readonly CelValue[]) => {
      const [first, ...others] = elementsOf(list, meter)
      if (first === undefined) throw new Error('the list is empty')
      return others.reduce(
        (found, element) => (Math.sign(compareValues(element, found)) === wanted ? element : found),
        first,
      )
    }
  return [
    ...comparing(equal),
    on('slice', [INT, INT], LIST, slice),
    on('flatten', [], LIST, (meter, [list]) => listOf(flatten(meter, list, 1))),
    on('flatten', [INT], LIST, (meter, [list, depth]) => listOf(flatten(meter, list, intOf(depth)))),
    on('reverse', [], LIST, (meter, [list]) => listOf(elementsOf(list, meter).toReversed())),
    on('sort', [], LIST, (meter, [list]) => {
      const elements = elementsOf(list, meter)
      return sortedBy(meter, elements, elements)
    }),
    on('isSorted', [], BOOL, (meter, [list]) =>
      elementsOf(list, meter).every(
        (element, index, all) => index === 0 || compareValues(all[index - 1] ?? null, element) <= 0,
      ),
    ),
    on('sum', [], DYN, sum),
    on('min', [], DYN, best(-1)),
    on('max', [], DYN, best(1)),
    on('first', [], DYN, (meter, [list]) => optionalOf(elementsOf(list, meter)[0])),
    on('last', [], DYN, (meter, [list]) => optionalOf(elementsOf(list, meter).at(-1))),
    {
      name: '@sortBy',
      args: [LIST, LIST],
      result: LIST,
      run: (meter, [list, keys]) => sortedBy(meter, elementsOf(list, meter), elementsOf(keys, meter)),
    },
    {
      name: 'lists.range',
      args: [INT],
      result: LIST,
      run(meter, [size]) {
        const count = intOf(size)
        if (count < 0) throw new Error('the size is negative')
        meter.spend(Math.min(count, LIMITS.steps + 1))
        return listOf(Array.from({ length: count }, (_, index) => BigInt(index)))
      },
    },
    ...pairFunctions(),
  ]
}
