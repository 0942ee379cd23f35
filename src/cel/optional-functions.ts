import type { CelValue } from '@bufbuild/cel'
import { elementsOf, listOf, type Definition } from './define.ts'
import { cel } from './library.ts'
import { NO_OVERLOAD, valueAt } from './lists.ts'
import { OPTIONAL } from './tree.ts'
import { isOptional, optionalOf, valueOfOptional } from './optional.ts'

/** `container.?key`, and what is selected from an optional value; a missing key gives none, a wrong type is an error. */
function select(container: CelValue | undefined, key: CelValue | undefined): CelValue {
  const from = isOptional(container) ? container.value : container
  if (from === undefined) return optionalOf(undefined)
  const value = key === undefined ? NO_OVERLOAD : valueAt(from, key)
  if (value === NO_OVERLOAD) throw new Error('nothing can be selected here')
  return optionalOf(value)
}

function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === 0 || value === 0n || value === '') return true
  if (value instanceof Uint8Array) return value.length === 0
  if (cel().isCelList(value) || cel().isCelMap(value)) return value.size === 0
  return cel().isCelUint(value) && value.value === 0n
}

/** Optional values of CEL (cel-go, `cel.OptionalTypes`), beside those that are macros. */
export function optionalFunctions(): readonly Definition[] {
  const { DYN, BOOL } = cel().CelScalar
  const LIST = cel().listType(DYN)
  const unwrap: Definition['run'] = (meter, [list]) =>
    listOf(
      elementsOf(list, meter)
        .map(valueOfOptional)
        .filter((value) => value !== undefined),
    )
  return [
    { name: OPTIONAL.at, args: [DYN, DYN], result: DYN, run: (_meter, [container, key]) => select(container, key) },
    { name: OPTIONAL.of, args: [DYN], result: DYN, run: (_meter, [value]) => optionalOf(value) },
    { name: OPTIONAL.none, args: [], result: DYN, run: () => optionalOf(undefined) },
    {
      name: OPTIONAL.ofNonZeroValue,
      args: [DYN],
      result: DYN,
      run: (_meter, [value = null]) => optionalOf(isZero(value) ? undefined : value),
    },
    { name: OPTIONAL.unwrap, args: [LIST], result: LIST, run: unwrap },
    { name: 'unwrapOpt', target: LIST, args: [], result: LIST, run: unwrap },
    {
      name: 'hasValue',
      target: DYN,
      args: [],
      result: BOOL,
      run: (_meter, [optional]) => valueOfOptional(optional) !== undefined,
    },
    {
      name: 'value',
      target: DYN,
      args: [],
      result: DYN,
      run(_meter, [optional]) {
        const value = valueOfOptional(optional)
        if (value === undefined) throw new Error('there is no value')
        return value
      },
    },
  ]
}
