import { type OnBehalf, OutboundError } from '../core/index.ts'

export interface FairQueueOptions {
  /** Concurrent calls. Callers within their share may use as many again while others hold borrowed slots. */
  readonly maxConcurrent: number
  /** Of these, the guaranteed share of a caller. */
  readonly share: number
  /**
   * Queued calls; beyond, the last call of the caller with most queued calls is rejected, unauthenticated callers
   * first.
   */
  readonly maxQueued: number
}

/** A call's slot: in the queue, then among running calls. */
export interface Slot {
  /** Resolves when the call may run. Rejects with `OutboundError` overloaded if it may not. */
  readonly turn: Promise<void>
  /** Releases the slot, or leaves the queue. May be called repeatedly. */
  leave(): void
}

export interface FairQueue {
  /** `by` undefined: a call by the proxy itself, which counts as a caller. */
  take(by: Pick<OnBehalf, 'caller' | 'isUnauthenticated'> | undefined): Slot
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

/** Queues of waiting callers, in round-robin order. */
type Queue = Set<Line>

/**
 * Creates a fair concurrency limit (decisions §2.10). Each caller has a share; waiting callers are served round robin,
 * known callers first. Free slots are borrowed, even all by one caller. Borrowed slots do not count against the shares
 * of others, so slow calls delay only their caller.
 */
export function createFairQueue({ maxConcurrent, share, maxQueued }: FairQueueOptions): FairQueue {
  const lines = new Map<string | symbol, Line>()
  const known: Queue = new Set()
  const unauthenticated: Queue = new Set()
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

  /** Keeps a queue only while it has calls; a leaving call must not remove the queue of later ones. */
  const settle = (line: Line): void => {
    if (line.waiting.length > 0) return
    line.queue.delete(line)
    if (line.running === 0 && lines.get(line.caller) === line) lines.delete(line.caller)
  }

  const mayStart = (line: Line): boolean => (line.running < share && shared < maxConcurrent) || running < maxConcurrent

  /** The next queue. */
  const first = (): Line | undefined => {
    const all = [known, unauthenticated]
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

  /** Frees a place in the queue; false if no other caller has more queued calls. */
  const makeRoom = (line: Line): boolean => {
    if (queued < maxQueued) return true
    const givesWay = line.queue === known && unauthenticated.size > 0
    let longest: Line | undefined
    for (const other of givesWay ? unauthenticated : line.queue)
      if (longest === undefined || other.waiting.length > longest.waiting.length) longest = other
    if (longest === undefined || (!givesWay && longest.waiting.length <= line.waiting.length + 1)) return false
    queued -= 1
    longest.waiting.pop()?.refuse()
    settle(longest)
    return true
  }

  return {
    take(by) {
      const line = lineOf(
        by?.caller ?? Symbol('the proxy itself'),
        by?.isUnauthenticated === true ? unauthenticated : known,
      )
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
