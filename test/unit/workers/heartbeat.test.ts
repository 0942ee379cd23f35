import type { WorkerProcess } from '../../../src/workers/worker-process.ts'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { NoAnswer } from '../../../src/workers/peer.ts'
import { watchHeartbeats } from '../../../src/workers/heartbeat.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A worker that answers while `isAlive`, and its questions so far. */
function createWorker() {
  const one = { isAlive: true, asked: 0 }
  const ask = (_name: string, _args: unknown, deadlineMs: number): Promise<never> => {
    one.asked += 1
    if (one.isAlive) return Promise.resolve(undefined as never)
    return new Promise((_resolve, reject) => setTimeout(() => reject(new NoAnswer('late')), deadlineMs))
  }
  return { one, worker: { peer: { ask } } as unknown as WorkerProcess }
}

function watch(...workers: ReturnType<typeof createWorker>[]) {
  const starting = new Set<WorkerProcess>()
  const hung: { worker: WorkerProcess; seconds: number }[] = []
  const heartbeats = watchHeartbeats({
    workers: () => workers.map(({ worker }) => worker),
    hasStarted: (worker) => !starting.has(worker),
    onHung: (worker, seconds) => hung.push({ worker, seconds }),
  })
  return { heartbeats, hung, starting }
}

describe('the heartbeats of workers', () => {
  it('reports a worker that misses twelve heartbeats once, and no worker that answers', async () => {
    const [well, ill] = [createWorker(), createWorker()]
    const { heartbeats, hung } = watch(well, ill)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(hung).toEqual([])
    ill.one.isAlive = false
    await vi.advanceTimersByTimeAsync(12_000)
    expect(hung).toEqual([])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(hung).toEqual([{ worker: ill.worker, seconds: 12 }])
    await vi.advanceTimersByTimeAsync(120_000)
    expect(hung).toHaveLength(1)
    heartbeats.close()
    const { asked } = well.one
    await vi.advanceTimersByTimeAsync(10_000)
    expect(well.one.asked).toBe(asked)
  })

  it('resets its count with each answer, however late', async () => {
    const slow = createWorker()
    const { hung } = watch(slow)
    for (let round = 0; round < 5; round += 1) {
      slow.one.isAlive = false
      await vi.advanceTimersByTimeAsync(11_000)
      slow.one.isAlive = true
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(hung).toEqual([])
  })

  it('gives one that is just starting a minute', async () => {
    const fresh = createWorker()
    const { hung, starting } = watch(fresh)
    starting.add(fresh.worker)
    fresh.one.isAlive = false
    await vi.advanceTimersByTimeAsync(60_000)
    expect(hung).toEqual([])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(hung).toEqual([{ worker: fresh.worker, seconds: 60 }])
  })

  it('counts a pause of the machine, however long, as one question', async () => {
    const paused = createWorker()
    const { hung } = watch(paused)
    paused.one.isAlive = false
    for (let pause = 1; pause <= 5; pause += 1) {
      vi.setSystemTime(Date.now() + 3_600_000)
      await vi.advanceTimersByTimeAsync(1_000)
    }
    paused.one.isAlive = true
    await vi.advanceTimersByTimeAsync(30_000)
    expect(hung).toEqual([])
  })
})
