import { type OnBehalf, OutboundError } from '../core/index.ts'

export interface TurnsOptions {
  /** Calls at a time. Callers within their shares may have as many again while others' calls hold places that were lent. */
  readonly maxConcurrent: number
  /** Of these, as many as a caller may have whoever else waits. */
  readonly share: number
  /** Calls that wait; with one more, the last of whoever has most waiting is refused, of strangers first. */
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
  /** `by` undefined: a call of the proxy itself, which counts as a caller of its own. */
  take(by: Pick<OnBehalf, 'caller' | 'isUnauthenticated'> | undefined): Place
}

interface Waiter {
  readonly start: () => void
  readonly refuse: () => void
}

interface Line {
  readonly caller: string | symbol
  readonly queue: Queue
  running: number
  readonly waiting: Waiter[]
}

/** Lines in which somebody waits, in the order in which they have their next turn. */
type Queue = Set<Line>

/**
 * A concurrency bound that is fair between callers (decisions §2.10). Each has a share, and those that wait are served
 * round robin, known callers before strangers. Places that nobody else wants are lent, all of them to one if need be; what
 * is lent counts nothing against the shares of others, so that slow calls hold up whoever makes them and nobody else.
 */
export function createTurns({ maxConcurrent, share, maxQueued }: TurnsOptions): Turns {
  const lines = new Map<string | symbol, Line>()
  const known: Queue = new Set()
  const strangers: Queue = new Set()
  let running = 0
  /** Of these, calls within the share of their caller. */
  let shared = 0
  let queued = 0

  const lineOf = (caller: string | symbol, queue: Queue): Line => {
    const found = lines.get(caller)
    if (found !== undefined) return found
    const line = { caller, queue, running: 0, waiting: [] }
    lines.set(caller, line)
    return line
  }

  /** Keeps a line only where it belongs. A call that leaves again must not take the line of the caller's next calls with it. */
  const settle = (line: Line): void => {
    if (line.waiting.length > 0) return
    line.queue.delete(line)
    if (line.running === 0 && lines.get(line.caller) === line) lines.delete(line.caller)
  }

  const mayStart = (line: Line): boolean => (line.running < share && shared < maxConcurrent) || running < maxConcurrent

  /** The line whose turn it is. */
  const first = (): Line | undefined => {
    const all = [known, strangers]
    if (shared < maxConcurrent) for (const queue of all) for (const line of queue) if (line.running < share) return line
    if (running < maxConcurrent) for (const queue of all) for (const line of queue) return line
    return undefined
  }

  const next = (): void => {
    while (queued > 0) {
      const line = first()
      const waiter = line?.waiting.shift()
      if (line === undefined || waiter === undefined) return
      queued -= 1
      line.queue.delete(line)
      if (line.waiting.length > 0) line.queue.add(line)
      waiter.start()
    }
  }

  /** Makes room in the queue for a caller; false when nobody has more waiting than that caller would have. */
  const makeRoom = (line: Line): boolean => {
    if (queued < maxQueued) return true
    const givesWay = line.queue === known && strangers.size > 0
    let longest: Line | undefined
    for (const other of givesWay ? strangers : line.queue)
      if (longest === undefined || other.waiting.length > longest.waiting.length) longest = other
    if (longest === undefined || (!givesWay && longest.waiting.length <= line.waiting.length + 1)) return false
    queued -= 1
    longest.waiting.pop()?.refuse()
    settle(longest)
    return true
  }

  return {
    take(by) {
      const line = lineOf(by?.caller ?? Symbol('the proxy itself'), by?.isUnauthenticated === true ? strangers : known)
      const { promise: turn, resolve, reject } = Promise.withResolvers<void>()
      let state: 'waiting' | 'running' | 'gone' = 'gone'

      const waiter: Waiter = {
        start() {
          state = 'running'
          line.running += 1
          running += 1
          if (line.running <= share) shared += 1
          resolve()
        },
        refuse() {
          state = 'gone'
          reject(new OutboundError('overloaded'))
        },
      }
      const leave = (): void => {
        if (state === 'running') {
          state = 'gone'
          if (line.running <= share) shared -= 1
          line.running -= 1
          running -= 1
          next()
        } else if (state === 'waiting') {
          line.waiting.splice(line.waiting.indexOf(waiter), 1)
          queued -= 1
          waiter.refuse()
        }
        settle(line)
      }

      if (mayStart(line)) waiter.start()
      else if (makeRoom(line)) {
        state = 'waiting'
        line.waiting.push(waiter)
        line.queue.add(line)
        queued += 1
      } else {
        waiter.refuse()
        settle(line)
      }
      return { turn, leave }
    },
  }
}
