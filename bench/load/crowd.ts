/**
 * Effect of a crowd on other callers: event streams that stay open, and clients that read 1 KiB a second of answers without end.
 *
 *   node bench/load/crowd.ts [--seconds 30] [--streams 5000] [--readers 1000] [--requests 200]
 *
 * Needs `ulimit -n` of three times streams and readers. Budgets: no request fails; while the crowd is there, as many take longer
 * than a second as of those straight to the backend, which tell what else this machine does, and the p99 is at most 50 ms beyond
 * theirs; no stream is cut. The latency while the crowd connects, all of it at once, is printed without a budget: it takes all
 * of a core. Exit code 1 when exceeded.
 */
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { forkScript, memoryOf, startProxyCommand } from '../processes.ts'
import { budget, keepPace, pause, problemsOf, quantile, say, tookMs } from './pace.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    streams: { type: 'string', default: '5000' },
    readers: { type: 'string', default: '1000' },
    requests: { type: 'string', default: '200' },
  },
})
const perSecond = Number(values.requests)
const BEFORE_MS = 5_000
const STALLED_MS = 1_000
const MIB = 1024 * 1024

const backend = await forkScript('backend.ts')
const proxy = await startProxyCommand({ backend: backend.url, types: ['bearerToken'] })
let crowd: Awaited<ReturnType<typeof forkScript>> | undefined
try {
  const [through, direct] = [proxy.url, backend.url].map((url) => new Pool(url, { connections: 32 }))
  const post = (pool: Pool | undefined, path: string) => async (): Promise<void> => {
    if (pool === undefined) throw new RangeError('no such pool')
    const headers = { 'content-type': 'application/json' }
    const { statusCode, body } = await pool.request({ path, method: 'POST', headers, body: '{}' })
    await body.text()
    if (statusCode !== 200) throw new Error(String(statusCode))
  }
  const calls = keepPace(perSecond, post(through, '/bearerToken'))
  const control = keepPace(perSecond, post(direct, '/mcp'))
  await pause(BEFORE_MS)
  const comesAt = performance.now()
  const before = memoryOf(proxy.pid)
  crowd = await forkScript('load/crowd-clients.ts', [proxy.url, values.streams, values.readers])
  const thereAt = performance.now()
  await pause(Number(values.seconds) * 1000)
  const endsAt = performance.now()
  const { child } = crowd
  const left = await new Promise<{ readonly streams: number; readonly readers: number }>((resolve) => {
    child.once('message', (message) => resolve(message as { streams: number; readers: number }))
    child.send('count')
  })
  const memory = memoryOf(proxy.pid)
  await Promise.all([calls.stop(), control.stop()])

  const phases = [
    ['before the crowd', comesAt - BEFORE_MS, comesAt],
    ['while it comes', comesAt, thereAt],
    ['while it is there', thereAt, endsAt],
  ] as const
  for (const [phase, from, to] of phases) {
    const [mine, theirs] = [calls, control].map(({ outcomes }) => tookMs(outcomes, from, to))
    for (const [what, took] of [
      ['through the proxy', mine ?? []],
      ['straight to the backend', theirs ?? []],
    ] as const) {
      const [half, most, worst] = [0.5, 0.99, 1].map((part) => quantile(took, part).toFixed(0))
      say(`${phase}, ${took.length} requests ${what}: p50 ${half} ms, p99 ${most} ms, longest ${worst} ms`)
    }
  }
  say(
    `${left.streams} of ${values.streams} streams and ${left.readers} of ${values.readers} slow readers are still there`,
  )
  say(`memory of the proxy: ${(before / MIB).toFixed(0)} MiB before, ${(memory / MIB).toFixed(0)} MiB with the crowd`)
  const [mine, theirs] = [calls, control].map(({ outcomes }) => tookMs(outcomes, thereAt, endsAt))
  const stalled = (took: readonly number[] = []): number => took.filter((ms) => ms > STALLED_MS).length
  const failed = calls.outcomes.filter(({ problem }) => problem !== undefined)
  budget(`requests that failed ${JSON.stringify(problemsOf(failed))}`, failed.length, 0)
  budget(`requests of ${mine?.length} that took longer than ${STALLED_MS} ms`, stalled(mine), stalled(theirs))
  budget('added p99, ms', quantile(mine ?? [], 0.99) - quantile(theirs ?? [], 0.99), 50)
  budget('streams that were cut', Number(values.streams) - left.streams, 0)
  await Promise.all([through?.close(), direct?.close()])
} finally {
  await crowd?.stop()
  await proxy.stop()
  await backend.stop()
}
