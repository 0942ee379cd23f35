import type { WorkerProcess, WorkerEnd } from '../../../src/workers/worker-process.ts'
import { describe, expect, it, vi } from 'vitest'
import { startPool } from '../../../src/workers/worker-pool.ts'
import type { StartFailure } from '../../../src/workers/messages.ts'
import { openMetrics } from '../../../src/report/metrics.ts'
import { createRecordingLog } from '../../support/ports.ts'

/** Workers that start, die and stop as the test says. */
function createWorld(outcome: (index: number) => StartFailure | undefined = () => undefined) {
  const metrics = openMetrics({ processMetrics: false })
  const log = createRecordingLog()
  const workers: { worker: WorkerProcess; die(end?: Partial<WorkerEnd>): void; stopped: boolean; killed: boolean }[] =
    []
  const onEnded = vi.fn()
  const fork = (): WorkerProcess => {
    const { promise: ended, resolve } = Promise.withResolvers<WorkerEnd>()
    const failure = outcome(workers.length)
    const one = {
      die: (end: Partial<WorkerEnd> = {}) => resolve({ code: null, signal: 'SIGKILL', ...end }),
      stopped: false,
      killed: false,
      worker: {
        pid: workers.length + 1,
        started: Promise.resolve(failure),
        ended,
        kill() {
          one.killed = true
          one.die()
        },
        peer: {
          ask(name: string) {
            if (name === 'beat')
              return isHung ? new Promise<never>(() => undefined) : Promise.resolve(undefined as never)
            one.stopped = true
            if (isObedient) one.die({ code: 0, signal: null })
            return Promise.resolve(undefined as never)
          },
        },
      } satisfies WorkerProcess,
    }
    workers.push(one)
    return one.worker
  }
  let isObedient = true
  let isHung = false
  return {
    hang: () => void (isHung = true),
    metrics,
    log,
    workers,
    onEnded,
    disobey: () => void (isObedient = false),
    start: (count: number) => startPool({ count, fork, log, metrics, onEnded }),
  }
}

describe('a pool of workers', () => {
  it('has the configured number of workers, and replaces each that exits', async () => {
    const { start, workers, metrics, log, onEnded } = createWorld()
    const pool = await start(3)
    expect(pool.serving).toHaveLength(3)
    workers[1]?.die()
    await vi.waitFor(() => expect(pool.serving).toContain(workers[3]?.worker))
    expect(pool.serving).toHaveLength(3)
    expect(onEnded).toHaveBeenCalledExactlyOnceWith(workers[1]?.worker)
    expect(log.lines.join('\n')).toContain('starting a replacement')
    const text = await metrics.render()
    expect(text).toContain('extauth_workers 3')
    expect(text).toContain('extauth_worker_ends_total{reason="crashed"} 1')
    await pool.stop(1_000)
    expect(pool.serving).toHaveLength(0)
    expect(workers).toHaveLength(4)
  })

  it('tries again and again when a replacement does not start', async () => {
    const lines = ['proxy.yaml:1:1 is broken']
    const { start, workers, log } = createWorld((index) => (index === 2 || index === 3 ? { lines } : undefined))
    const pool = await start(2)
    workers[0]?.die()
    await vi.waitFor(() => expect(workers.length).toBeGreaterThan(4), 5_000)
    await vi.waitFor(() => expect(pool.serving).toHaveLength(2))
    expect(log.lines.join('\n')).toContain('proxy.yaml:1:1 is broken')
    await pool.stop(1_000)
  })

  it('does not start when one of the first does not, and leaves none running', async () => {
    const { start, workers } = createWorld((index) =>
      index === 2 ? { code: 'config_error', detail: 'no' } : undefined,
    )
    await expect(start(3)).rejects.toMatchObject({ failure: { code: 'config_error' } })
    expect(workers.filter(({ stopped, killed }) => !stopped && !killed)).toHaveLength(0)
  })

  it('kills a worker that does not answer, and has a new one for it', async () => {
    vi.useFakeTimers()
    try {
      const { start, workers, metrics, log, hang } = createWorld()
      const pool = await start(1)
      await vi.advanceTimersByTimeAsync(30_000)
      expect(workers).toHaveLength(1)
      hang()
      await vi.advanceTimersByTimeAsync(14_000)
      expect(workers.map(({ killed }) => killed)).toEqual([true, false])
      expect(pool.serving).toEqual([workers[1]?.worker])
      expect(log.lines.join('\n')).toContain('is unresponsive')
      expect(await metrics.render()).toContain('extauth_worker_ends_total{reason="hung"} 1')
      await pool.stop(1_000)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('ends those that do not stop in time', async () => {
    const { start, workers, disobey } = createWorld()
    const pool = await start(2)
    disobey()
    await pool.stop(50)
    expect(workers.every(({ stopped, killed }) => stopped && killed)).toBe(true)
    expect(pool.serving).toHaveLength(0)
  })
})
