import type { HeldLock } from './port.ts'

interface Lock {
  fence: number
  isHeld: boolean
  /** In order of arrival. */
  readonly waiting: Set<(held: HeldLock) => void>
}

/**
 * Creates the locks of one process. They need no renewal: they end with their owner. `acquire` waits up to `waitMs`,
 * first come, first served.
 */
export function createMemoryLocks(): { acquire(name: string, waitMs: number): Promise<HeldLock | undefined> } {
  const locks = new Map<string, Lock>()
  let fences = 0

  const grant = (name: string, lock: Lock): HeldLock => {
    fences += 1
    lock.fence = fences
    lock.isHeld = true
    let isMine = true
    return {
      fence: fences,
      get isHeld() {
        return isMine
      },
      release() {
        if (!isMine) return Promise.resolve()
        isMine = false
        const [next] = lock.waiting
        if (next === undefined) {
          locks.delete(name)
        } else {
          lock.waiting.delete(next)
          next(grant(name, lock))
        }
        return Promise.resolve()
      },
    }
  }

  return {
    acquire(name, waitMs) {
      const lock = locks.get(name) ?? { fence: 0, isHeld: false, waiting: new Set() }
      locks.set(name, lock)
      if (!lock.isHeld) return Promise.resolve(grant(name, lock))
      if (waitMs <= 0) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        const turn = (held: HeldLock) => {
          clearTimeout(timer)
          resolve(held)
        }
        const timer = setTimeout(() => {
          lock.waiting.delete(turn)
          resolve(undefined)
        }, waitMs)
        lock.waiting.add(turn)
      })
    },
  }
}
