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

  /** Compiles a literal. Throws an `Error` that says what is wrong with it. */
  add(pattern: string): void {
    this.#literals.set(pattern, compile(pattern))
  }

  /** Whether the pattern is found in the text (CEL `matches`, not anchored); pays for text length times pattern size. */
  matches(text: string, pattern: string, meter: Meter): boolean {
    const literal = this.#literals.get(pattern)
    if (literal === undefined) meter.spend(2 * weigh(pattern) + pattern.length)
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

/**
 * About how large a pattern is once compiled: repetitions multiply what they repeat, Unicode classes hold hundreds of
 * ranges. An estimate that is too high only costs steps.
 */
export function weigh(pattern: string): number {
  const outer: number[] = []
  let sum = 1
  let last = 0
  const token = /\\[pP](?:\{[^}]*\}|.)|\\[^]|\[\^?\]?(?:\\[^]|[^\\\]])*\]|\{(\d+)(?:,(\d*))?\}|[^]/gu
  for (const [text, least, most] of pattern.matchAll(token)) {
    if (text === '(') {
      outer.push(sum)
      sum = 1
    } else if (text === ')') {
      last = sum
      sum += outer.pop() ?? 0
    } else if (least === undefined) {
      last = 1 + 10 * (text.match(/\\[pP]/g)?.length ?? 0)
      sum += last
    } else {
      const times = Math.max(Number(least), Number(most === undefined || most === '' ? least : most))
      sum += last * Math.max(0, times - 1)
    }
  }
  return outer.reduce((total, size) => total + size, sum)
}
