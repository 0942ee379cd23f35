import { OutboundError } from '../core/index.ts'

export interface TurnsOptions {
  /** Calls at a time. */
  readonly maxConcurrent: number
  /** Of these, calls of one caller at a time. */
  readonly maxPerCaller: number
  /** Calls that wait; with one more, the last of whoever has most waiting is refused. */
  readonly maxQueued: number
}

/** One call's place in the queue, and then among the calls that run. */
export interface Place {
  /** Settles when it is this call's turn. Rejects with `OutboundError` overloaded when the turn never comes. */
  readonly turn: Promise<void>
  /** The call has ended, or waits no longer. May be called more than once. */
  leave(): void
}

export interface Turns {
  /** `caller` undefined: a call of the proxy itself, which counts as a caller of its own. */
  take(caller: string | undefined): Place
}

interface Waiter {
  readonly start: () => void
  readonly refuse: () => void
}

interface Line {
  running: number
  readonly waiting: Waiter[]
}

/**
 * A concurrency bound that is fair between callers: each has at most a share of it, and those that wait are served round
 * robin (decisions §2.10), so that one caller's slow calls hold up that caller's and nobody else's.
 */
export function createTurns({ maxConcurrent, maxPerCaller, maxQueued }: TurnsOptions): Turns {
  /** In the order in which callers have their next turn. */
  const lines = new Map<string | symbol, Line>()
  let running = 0
  let queued = 0

  const lineOf = (caller: string | symbol): Line => {
    const known = lines.get(caller)
    if (known !== undefined) return known
    const line = { running: 0, waiting: [] }
    lines.set(caller, line)
    return line
  }

  const next = (): void => {
    if (queued === 0 || running >= maxConcurrent) return
    for (const [caller, line] of lines) {
      if (line.running >= maxPerCaller) continue
      const waiter = line.waiting.shift()
      if (waiter === undefined) continue
      queued -= 1
      lines.delete(caller)
      lines.set(caller, line)
      return waiter.start()
    }
  }

  /** Makes room in the queue for a caller; false when nobody has more waiting than that caller would have. */
  const makeRoom = (line: Line): boolean => {
    if (queued < maxQueued) return true
    let longest = line
    for (const other of lines.values()) if (other.waiting.length > longest.waiting.length) longest = other
    if (longest.waiting.length <= line.waiting.length + 1) return false
    queued -= 1
    longest.waiting.pop()?.refuse()
    return true
  }

  return {
    take(asked) {
      const caller = asked ?? Symbol('the proxy itself')
      const line = lineOf(caller)
      const { promise: turn, resolve, reject } = Promise.withResolvers<void>()
      let state: 'waiting' | 'running' | 'gone' = 'gone'

      const waiter: Waiter = {
        start() {
          state = 'running'
          line.running += 1
          running += 1
          resolve()
        },
        refuse() {
          state = 'gone'
          reject(new OutboundError('overloaded'))
        },
      }
      const forget = (): void => {
        // A call that leaves again must not take the line of the caller's next calls with it.
        if (line.running === 0 && line.waiting.length === 0 && lines.get(caller) === line) lines.delete(caller)
      }
      const leave = (): void => {
        if (state === 'running') {
          state = 'gone'
          line.running -= 1
          running -= 1
          next()
        } else if (state === 'waiting') {
          line.waiting.splice(line.waiting.indexOf(waiter), 1)
          queued -= 1
          waiter.refuse()
        }
        forget()
      }

      if (running < maxConcurrent && line.running < maxPerCaller && line.waiting.length === 0) waiter.start()
      else if (makeRoom(line)) {
        state = 'waiting'
        line.waiting.push(waiter)
        queued += 1
      } else {
        waiter.refuse()
        forget()
      }
      return { turn, leave }
    },
  }
}
