import type { CelValue } from '@bufbuild/cel'
import { elementsOf, type Definition } from './define.ts'
import { cel } from './library.ts'
import type { Meter } from './limits.ts'

type Numeric = number | bigint

/** A number of any of the three types; undefined for everything else. */
function numeric(value: CelValue | undefined): Numeric | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value
  return cel().isCelUint(value) ? value.value : undefined
}

/** Negative, 0 or positive; numbers compare across types. Throws for values that have no order between them. */
export function compareValues(left: CelValue, right: CelValue): number {
  const [a, b] = [numeric(left), numeric(right)]
  if (a !== undefined && b !== undefined) return a < b ? -1 : a > b ? 1 : 0
  if (typeof left === 'string' && typeof right === 'string') return left < right ? -1 : left > right ? 1 : 0
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right)
  throw new Error('these values have no order')
}

const MOST_ARGUMENTS = 10

function extreme(wanted: -1 | 1) {
  return (meter: Meter, args: readonly CelValue[]): CelValue => {
    const [only] = args
    const values = args.length === 1 && only !== undefined && cel().isCelList(only) ? elementsOf(only, meter) : args
    const [first, ...others] = values
    if (first === undefined || values.some((value) => numeric(value) === undefined)) throw new Error('expected numbers')
    return others.reduce((best, value) => (Math.sign(compareValues(value, best)) === wanted ? value : best), first)
  }
}

function halfAwayFromZero(value: number): number {
  const rounded = Math.trunc(value)
  return Math.abs(value - rounded) >= 0.5 ? rounded + Math.sign(value) : rounded
}

function absolute(value: CelValue | undefined): CelValue {
  if (typeof value === 'number') return Math.abs(value)
  if (typeof value === 'bigint' && value !== -(2n ** 63n)) return value < 0n ? -value : value
  if (value !== undefined && cel().isCelUint(value)) return value
  throw new Error('has no absolute value')
}

function sign(value: CelValue | undefined): CelValue {
  if (typeof value === 'number') return Math.sign(value)
  if (typeof value === 'bigint') return value === 0n ? 0n : value < 0n ? -1n : 1n
  if (value !== undefined && cel().isCelUint(value)) return cel().celUint(value.value === 0n ? 0n : 1n)
  throw new Error('expected a number')
}

const real =
  (change: (value: number) => CelValue) =>
  (_meter: Meter, [value]: readonly CelValue[]) => {
    if (typeof value !== 'number') throw new Error('expected a double')
    return change(value)
  }

/** Both as ints, or both as uints. */
function bits(change: (left: bigint, right: bigint) => bigint) {
  return (_meter: Meter, [left, right]: readonly CelValue[]): CelValue => {
    if (typeof left === 'bigint' && typeof right === 'bigint') return BigInt.asIntN(64, change(left, right))
    if (left !== undefined && right !== undefined && cel().isCelUint(left) && cel().isCelUint(right))
      return cel().celUint(BigInt.asUintN(64, change(left.value, right.value)))
    throw new Error('expected two ints or two uints')
  }
}

function shift(change: (value: bigint, by: bigint) => bigint) {
  return (_meter: Meter, [value, by]: readonly CelValue[]): CelValue => {
    if (typeof by !== 'bigint' || by < 0n) throw new Error('expected a number of bits')
    const isFar = by > 63n
    if (typeof value === 'bigint') return isFar ? 0n : BigInt.asIntN(64, change(BigInt.asUintN(64, value), by))
    if (value !== undefined && cel().isCelUint(value))
      return cel().celUint(isFar ? 0n : BigInt.asUintN(64, change(value.value, by)))
    throw new Error('expected an int or a uint')
  }
}

function inverted(_meter: Meter, [value]: readonly CelValue[]): CelValue {
  if (typeof value === 'bigint') return ~value
  if (value !== undefined && cel().isCelUint(value)) return cel().celUint(BigInt.asUintN(64, ~value.value))
  throw new Error('expected an int or a uint')
}

/** The extension `math` of CEL (cel-go ext/math, version 2). */
export function mathFunctions(): readonly Definition[] {
  const { DYN, BOOL, DOUBLE } = cel().CelScalar
  const one = (name: string, result: Definition['result'], run: Definition['run']) => ({
    name: `math.${name}`,
    args: [DYN],
    result,
    run,
  })
  const two = (name: string, run: Definition['run']) => ({ name: `math.${name}`, args: [DYN, DYN], result: DYN, run })
  const many = (name: string, run: Definition['run']) =>
    Array.from({ length: MOST_ARGUMENTS }, (_, count) => ({
      name: `math.${name}`,
      args: Array.from({ length: count + 1 }, () => DYN),
      result: DYN,
      run,
    }))
  return [
    ...many('greatest', extreme(1)),
    ...many('least', extreme(-1)),
    one('abs', DYN, (_meter, [value]) => absolute(value)),
    one('sign', DYN, (_meter, [value]) => sign(value)),
    one('ceil', DOUBLE, real(Math.ceil)),
    one('floor', DOUBLE, real(Math.floor)),
    one('round', DOUBLE, real(halfAwayFromZero)),
    one('trunc', DOUBLE, real(Math.trunc)),
    one('isNaN', BOOL, real(Number.isNaN)),
    one(
      'isInf',
      BOOL,
      real((value) => Math.abs(value) === Infinity),
    ),
    one('isFinite', BOOL, real(Number.isFinite)),
    one('sqrt', DOUBLE, (_meter, [value]) => {
      const number = numeric(value)
      if (number === undefined) throw new Error('expected a number')
      return Math.sqrt(Number(number))
    }),
    two(
      'bitAnd',
      bits((left, right) => left & right),
    ),
    two(
      'bitOr',
      bits((left, right) => left | right),
    ),
    two(
      'bitXor',
      bits((left, right) => left ^ right),
    ),
    two(
      'bitShiftLeft',
      shift((value, by) => value << by),
    ),
    two(
      'bitShiftRight',
      shift((value, by) => value >> by),
    ),
    one('bitNot', DYN, inverted),
  ]
}
