import { cel, wellKnownTypes } from './library.ts'
import type { CelEnv, CelFunc, CelResult, CelValue } from '@bufbuild/cel'
import { define } from './define.ts'
import { LIMITS, Meter } from './limits.ts'
import { listFunctions } from './list-functions.ts'
import { mathFunctions } from './numbers.ts'
import { optionalFunctions } from './optional-functions.ts'
import { textFunctions } from './text-functions.ts'
import { appendLists, equalValues, NO_OVERLOAD, valueAt } from './lists.ts'
import { INDEX, RANGE } from './tree.ts'
import { Patterns } from './patterns.ts'

type Call = CelFunc['call']

/** The seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the range of CEL timestamps. */
const TIMESTAMP_SECONDS = { least: -62_135_596_800n, most: 253_402_300_799n }

/** Shared by all matchers, because building it is nine tenths of a matcher's load time. */
export interface MeteredEnvironment {
  readonly env: CelEnv
  /** Of the evaluation that runs: they are synchronous, so there is one at a time. */
  readonly meter: Meter
  /** Starts an evaluation with all steps, and with the regular expressions of its matcher. */
  readonly begin: (patterns: Patterns) => void
}

let shared: MeteredEnvironment | undefined

export const meteredEnvironment = (): MeteredEnvironment => (shared ??= buildEnvironment())

function buildEnvironment(): MeteredEnvironment {
  const meter = new Meter()
  const current = { patterns: new Patterns() }
  return {
    env: environmentOf(meter, () => current.patterns),
    meter,
    begin(patterns) {
      meter.reset()
      current.patterns = patterns
    },
  }
}

/**
 * The standard functions, each paying for what it reads, with the library's deviations from CEL fixed: `timestamp(int)`
 * takes seconds, texts that are not numbers do not convert to numbers, and an index is not converted.
 */
function environmentOf(meter: Meter, patterns: () => Patterns): CelEnv {
  const standard = cel().celEnv().funcs
  const funcs = [...standard].map((func) => metered(func, meter, patterns))
  const { DYN, INT } = cel().CelScalar
  const timestamp = cel().celFunc('timestamp', [INT], cel().objectType(wellKnownTypes().TimestampSchema), (seconds) => {
    if (seconds < TIMESTAMP_SECONDS.least || seconds > TIMESTAMP_SECONDS.most) throw new Error('timestamp out of range')
    return wellKnownTypes().timestampFromMs(Number(seconds) * 1000)
  })
  const range = cel().celFunc(RANGE, [DYN, INT], DYN, (container) => container)
  const index = cel().celFunc(INDEX, [DYN, DYN], DYN, (container) => container)
  const equals = cel().celEnv().funcs.find('_==_')
  const equal = (left: CelValue, right: CelValue) => equals?.call(0, undefined, [left, right]) === true
  const more = [...textFunctions(), ...listFunctions(equal), ...mathFunctions(), ...optionalFunctions()]
  return cel().celEnv({
    funcs: [
      ...funcs,
      timestamp,
      derive(range, rangeCall(meter)),
      derive(index, indexCall),
      ...more.map((definition) => define(definition, meter)),
    ],
  })
}

/** The same function (name, types) with another way to call it. */
function derive(base: CelFunc, call: Call): CelFunc {
  return Object.assign(Object.create(base) as CelFunc, { call })
}

function metered(base: CelFunc, meter: Meter, patterns: () => Patterns): CelFunc {
  const [first, second] = base.arguments
  const scalars = (id: number) => (left: CelValue, right: CelValue) => base.call(id, undefined, [left, right]) === true
  switch (base.name) {
    case '_==_':
      return derive(base, (id, _target, args) => pair(args, (l, r) => equalValues(l, r, meter, scalars(id))))
    case '_!=_': {
      const differ = (id: number) => (l: CelValue, r: CelValue) => base.call(id, undefined, [l, r]) === false
      return derive(base, (id, _target, args) => pair(args, (l, r) => !equalValues(l, r, meter, differ(id))))
    }
    case '@in':
      return second?.name === 'list' ? derive(base, inListCall(meter)) : base
    case '_+_':
      if (first?.name !== 'list') break
      return derive(base, (_id, _target, args) =>
        pair(args, (l, r) => (cel().isCelList(l) && cel().isCelList(r) ? appendLists(l, r, meter) : undefined)),
      )
    case 'matches':
      return derive(base, matchesCall(meter, patterns))
    case 'int':
    case 'uint':
    case 'double':
    case 'bool':
    case 'timestamp':
    case 'duration':
      if (first === cel().CelScalar.STRING) return derive(base, conversionCall(base))
      break
    default:
  }
  return derive(base, linearCall(base, meter))
}

function pair(args: readonly CelValue[], call: (left: CelValue, right: CelValue) => CelResult | undefined) {
  const [left, right] = args
  return args.length !== 2 || left === undefined || right === undefined ? undefined : call(left, right)
}

/** Pays for the whole range before a macro visits it, as dearly as the body of the macro is large (second argument). */
function rangeCall(meter: Meter): Call {
  return (id, _target, args) =>
    pair(args, (container, weight) => {
      const sized = container as { readonly size?: unknown }
      if (typeof container !== 'object' || container === null || typeof sized.size !== 'number') {
        return cel().celError('a macro needs a list or a map', id)
      }
      meter.spend(sized.size * Number(weight))
      return container
    })
}

const indexCall: Call = (id, _target, args) =>
  pair(args, (container, key) => {
    const value = valueAt(container, key)
    if (value === NO_OVERLOAD) return cel().celError('no such index', id)
    return value === undefined ? cel().celError('no such key', id) : value
  })

function inListCall(meter: Meter): Call {
  const equal = cel().celEnv().funcs.find('_==_')
  return (id, _target, args) =>
    pair(args, (value, list) => {
      if (!cel().isCelList(list)) return undefined
      const scalars = (left: CelValue, right: CelValue) => equal?.call(id, undefined, [left, right]) === true
      for (const element of list) {
        meter.spend(1)
        if (equalValues(element, value, meter, scalars)) return true
      }
      return false
    })
}

function matchesCall(meter: Meter, patterns: () => Patterns): Call {
  return (id, target, args) => {
    const [pattern] = args
    if (typeof target !== 'string' || typeof pattern !== 'string' || args.length !== 1) return undefined
    try {
      return patterns().matches(target, pattern, meter)
    } catch (error) {
      if (meter.exceeded) throw error
      return cel().celError('not a regular expression', id)
    }
  }
}

/** Accepted number formats; JavaScript would also accept an empty string, spaces and `0x10`. */
const NUMERALS: Readonly<Record<string, RegExp>> = {
  int: /^[+-]?\d+$/,
  uint: /^\+?\d+$/,
  double: /^[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|Infinity)$|^NaN$/,
}

function conversionCall(base: CelFunc): Call {
  const numeral = NUMERALS[base.name]
  return (id, target, args) => {
    const [text] = args
    if (typeof text !== 'string' || args.length !== 1) return undefined
    if (text.length > LIMITS.convertedCharacters || numeral?.test(text) === false) {
      return cel().celError('this text does not convert', id)
    }
    return base.call(id, target, args)
  }
}

/** Functions that read their texts once, or look up a time zone, which is as dear as a long text. */
function linearCall(base: CelFunc, meter: Meter): Call {
  const zone = base.name.startsWith('get') && base.arguments.length === 1 ? LIMITS.charactersPerStep * 16 : 0
  return (id, target, args) => {
    const result = base.call(id, target, args)
    if (result === undefined || cel().isCelError(result)) return result
    const characters = args.reduce<number>((sum, value) => sum + lengthOf(value), lengthOf(target) + zone)
    if (characters >= LIMITS.charactersPerStep) meter.spend(Math.floor(characters / LIMITS.charactersPerStep))
    return result
  }
}

function lengthOf(value: CelValue | undefined): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 0
}
