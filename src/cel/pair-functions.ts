import type { CelValue } from '@bufbuild/cel'
import { elementsOf, listOf, type Definition } from './define.ts'
import { cel } from './library.ts'
import type { Meter } from './limits.ts'
import { valueOfOptional } from './optional.ts'

/** Helpers for macros over two variables, and for literals with optional parts. */
export function pairFunctions(): readonly Definition[] {
  const { DYN } = cel().CelScalar
  const [LIST, MAP] = [cel().listType(DYN), cel().mapType(DYN, DYN)]
  const mapOf = (entries: Iterable<readonly [CelValue, CelValue]>): CelValue => {
    const members = new Map<string | bigint | boolean, CelValue>()
    for (const [key, value] of entries) {
      if (typeof key !== 'string' && typeof key !== 'bigint' && typeof key !== 'boolean')
        throw new Error('no key of a map')
      if (members.has(key)) throw new Error('duplicate key')
      members.set(key, value)
    }
    return cel().celMap(members)
  }
  const pairOf = (pair: CelValue, meter: Meter): [CelValue, CelValue] => {
    const [key = null, value = null] = elementsOf(pair, meter)
    return [key, value]
  }
  return [
    {
      name: '@pairs',
      args: [DYN],
      result: LIST,
      run(meter, [container]) {
        if (container !== undefined && cel().isCelMap(container)) {
          meter.spend(container.size)
          return listOf(Array.from(container, (entry) => listOf(entry)))
        }
        return listOf(elementsOf(container, meter).map((element, index) => listOf([BigInt(index), element])))
      },
    },
    {
      name: '@mapOf',
      args: [LIST],
      result: MAP,
      run: (meter, [pairs]) => mapOf(elementsOf(pairs, meter).map((pair) => pairOf(pair, meter))),
    },
    {
      name: '@merged',
      args: [LIST],
      result: MAP,
      run: (meter, [maps]) =>
        mapOf(
          elementsOf(maps, meter).flatMap((map): (readonly [CelValue, CelValue])[] => {
            if (!cel().isCelMap(map)) throw new Error('expected a map')
            meter.spend(map.size)
            return Array.from(map)
          }),
        ),
    },
    {
      name: '@optionalMap',
      args: [LIST],
      result: MAP,
      run(meter, [parts]) {
        const flat = elementsOf(parts, meter)
        return mapOf(
          flat.flatMap((key, index): (readonly [CelValue, CelValue])[] => {
            if (index % 2 === 1) return []
            const value = valueOfOptional(flat[index + 1])
            return value === undefined ? [] : [[key, value]]
          }),
        )
      },
    },
    {
      name: '@optionalList',
      args: [LIST],
      result: LIST,
      run: (meter, [list]) =>
        listOf(
          elementsOf(list, meter)
            .map(valueOfOptional)
            .filter((value) => value !== undefined),
        ),
    },
  ]
}
