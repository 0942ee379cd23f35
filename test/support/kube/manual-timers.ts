import type { Timers } from '../../../src/kube/index.ts'

/** Timers that go off when the test says so. */
export function createManualTimers(startMs = 1_800_000_000_000): Timers & { advance(ms: number): Promise<void> } {
  let nowMs = startMs
  let due: { atMs: number; callback: () => void }[] = []
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return {
    now: () => nowMs,
    after(ms, callback) {
      const timer = { atMs: nowMs + ms, callback }
      due.push(timer)
      return () => void (due = due.filter((one) => one !== timer))
    },
    async advance(ms) {
      const endMs = nowMs + ms
      await settle()
      for (;;) {
        const next = due.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0]
        if (next === undefined) break
        due = due.filter((one) => one !== next)
        nowMs = Math.max(nowMs, next.atMs)
        next.callback()
        await settle()
      }
      nowMs = endMs
      await settle()
    },
  }
}

export const silentLog = { debug() {}, info() {}, warn() {}, error() {} }
