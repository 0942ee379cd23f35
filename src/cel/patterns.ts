import { re2 } from './library.ts'
import type { RE2JS } from '@bufbuild/re2'
import { LIMITS, type Meter } from './limits.ts'

interface Compiled {
  readonly expression: RE2JS
  readonly weight: number
}

/** A compiled expression remembers states of the texts that it has seen; after a search that cost more, it forgets them. */
const KEEP_UP_TO_STEPS = 100

/**
 * The regular expressions (RE2) of one matcher. Those written as literals are compiled once, at load; one that is
 * computed is compiled when it is used, is paid for, and is not kept.
 */
export class Patterns {
  readonly #literals = new Map<string, Compiled>()
  #weight = 0

  /** Compiles a literal. Throws an `Error` that names the fault. */
  add(pattern: string): void {
    if (this.#literals.has(pattern)) return
    this.#weight += weigh(pattern)
    if (this.#weight > LIMITS.patternWeight) throw new Error('it repeats too much: all patterns together are too large')
    this.#literals.set(pattern, compile(pattern))
  }

  /** Whether the pattern is found in the text (CEL `matches`, not anchored); pays for text length times pattern size. */
  matches(text: string, pattern: string, meter: Meter): boolean {
    const literal = this.#literals.get(pattern)
    if (literal === undefined) {
      // Before anything looks at it: a claim may be long.
      meter.spend(pattern.length)
      meter.spend(2 * weigh(pattern))
    }
    const { expression, weight } = literal ?? compile(pattern)
    const steps = Math.floor((text.length * weight) / LIMITS.matchingPerStep)
    meter.spend(steps)
    const found = expression.test(text)
    if (steps > KEEP_UP_TO_STEPS) expression.reset()
    return found
  }
}

function compile(pattern: string): Compiled {
  return { expression: re2().RE2JS.compile(pattern), weight: weigh(pattern) }
}

/** The tokens of a pattern; each has a bounded length. */
const PART = /\\[pP](?:\{[^{}\\]{1,40}\})?|\\[^]|\[\^?\]?|\{(\d{1,9})(?:,(\d{0,9}))?\}|[^]/gu
const UNICODE_CLASS = 10

/**
 * About how large a pattern is once compiled: repetitions multiply what they repeat, Unicode classes hold hundreds of
 * ranges. An estimate that is too high only costs steps. Takes time in proportion to the pattern's length.
 */
export function weigh(pattern: string): number {
  const outer: number[] = []
  let sum = 1
  let last = 0
  let isInClass = false
  const add = (weight: number): void => {
    last = weight
    sum += weight
  }
  for (const [text, least, most] of pattern.matchAll(PART)) {
    const isUnicodeClass = /^\\[pP]/.test(text)
    if (isInClass) {
      if (isUnicodeClass) last += UNICODE_CLASS
      if (text !== ']') continue
      isInClass = false
      sum += last
    } else if (text.startsWith('[')) {
      isInClass = true
      last = 1
    } else if (text === '(') {
      outer.push(sum)
      sum = 1
    } else if (text === ')') {
      last = sum
      sum += outer.pop() ?? 0
    } else if (least === undefined) add(isUnicodeClass ? 1 + UNICODE_CLASS : 1)
    else {
      const times = Math.max(Number(least), Number(most === undefined || most === '' ? least : most))
      sum += last * Math.max(0, times - 1)
    }
  }
  return outer.reduce((total, size) => total + size, sum)
}

/** A pattern that a whole text must match, in linear time. Throws an `Error` for an invalid or too large pattern. */
export function compileWhole(pattern: string): (text: string) => boolean {
  const { expression, weight } = compile(pattern)
  if (weight > LIMITS.patternWeight) throw new Error('it repeats too much')
  return (text) => expression.matches(text)
}
