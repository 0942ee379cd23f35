import type { CelFunc, CelType, CelValue } from '@bufbuild/cel'
import { cel } from './library.ts'
import { LIMITS, type Meter } from './limits.ts'

/** A function or method beyond those of the core language. Arguments have the declared types when it runs. */
export interface Definition {
  readonly name: string
  /** The type of what it is a method of; absent for a function. */
  readonly target?: CelType
  readonly args: readonly CelType[]
  readonly result: CelType
  /** Throws an `Error` for values that it does not take; pays for what it reads and makes. */
  readonly run: (meter: Meter, args: readonly CelValue[]) => CelValue
}

/** Registers the function. The library checks types; errors are CEL values, as for its own functions. */
export function define(definition: Definition, meter: Meter): CelFunc {
  const { name, target, args, result, run } = definition
  const { DYN } = cel().CelScalar
  const types = [...args]
  const base =
    target === undefined
      ? cel().celFunc(name, types, DYN, () => null)
      : cel().celMethod(name, target, types, DYN, () => null)
  const call: CelFunc['call'] = (id, on, values) => {
    const result = base.call(id, on, values)
    if (result === undefined) return undefined
    try {
      return run(meter, on === undefined ? values : [on, ...values])
    } catch (error) {
      return cel().celError(error instanceof Error ? error : 'cannot be used', id)
    }
  }
  return Object.create(base, { call: { value: call }, result: { value: result } }) as CelFunc
}

/** The elements of a list, paid for. */
export function elementsOf(value: CelValue | undefined, meter: Meter): CelValue[] {
  if (value === undefined || !cel().isCelList(value)) throw new Error('expected a list')
  meter.spend(value.size)
  return [...value]
}

/** A text, paid for by its length. */
export function textOf(value: CelValue | undefined, meter: Meter): string {
  if (typeof value !== 'string') throw new Error('expected a text')
  payFor(value.length, meter)
  return value
}

/** Pays for characters that are read or made. */
export const payFor = (characters: number, meter: Meter): void =>
  meter.spend(Math.floor(characters / LIMITS.charactersPerStep))

/** An int as a number; bounded, because no list or text is longer. */
export function intOf(value: CelValue | undefined): number {
  if (typeof value !== 'bigint') throw new Error('expected an int')
  return Number(value)
}

export const listOf = (elements: readonly CelValue[]): CelValue => cel().celList([...elements])

/** Pays for every element and character inside a value. */
export function payForAll(value: CelValue, meter: Meter, depth = 0): void {
  meter.spend(depth > LIMITS.comparisonDepth ? LIMITS.steps + 1 : 1)
  if (typeof value === 'string') payFor(value.length, meter)
  else if (cel().isCelList(value)) for (const element of value) payForAll(element, meter, depth + 1)
  else if (cel().isCelMap(value)) {
    for (const [key, member] of value) {
      payForAll(key, meter, depth + 1)
      payForAll(member, meter, depth + 1)
    }
  }
}
