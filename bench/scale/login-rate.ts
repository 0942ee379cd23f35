import { createSockets } from '../../test/support/sockets.ts'
import { keepPace, pause, problemsOf, quantile, tookMs } from '../load/pace.ts'
import { loginAt, loginRoute, startLoginProxy } from '../login-proxy.ts'
import { cpuOf, memoryOf } from '../processes.ts'

const MIB = 1024 * 1024
const PER_MINUTE = 1000
const WARM_LOGINS = 100

/** Complete logins at the embedded authorization server at a given pace, each by a client of its own connections. Gives a sentence. */
export async function runLoginRate(backend: string, seconds: number): Promise<string> {
  const sockets = createSockets()
  try {
    const proxy = await startLoginProxy(sockets, (url) => [
      loginRoute('own', 'bearer', { target: `${backend}/mcp`, ...loginAt(url, 'own') }),
    ])
    const logIn = await proxy.client('/own')
    // The first compile the code.
    for (let login = 0; login < WARM_LOGINS; login++) await logIn()
    const [memoryBefore, cpuBefore, from] = [memoryOf(proxy.pid), cpuOf(proxy.pid), performance.now()]
    const pace = keepPace(PER_MINUTE / 60, async () => void (await logIn()))
    await pause(seconds * 1000)
    await pace.stop()
    const to = performance.now()
    const share = (cpuOf(proxy.pid) - cpuBefore) / 1e6 / (to - from)
    const { outcomes } = pace
    const took = tookMs(outcomes, from, to)
    const failed = outcomes.filter(({ problem }) => problem !== undefined)
    const problems = failed.length === 0 ? '' : ` ${JSON.stringify(problemsOf(failed))}`
    const [before, after] = [memoryBefore, memoryOf(proxy.pid)].map((bytes) => (bytes / MIB).toFixed(0))
    return `**${PER_MINUTE} logins a minute** for ${seconds} s: ${failed.length} of ${outcomes.length} failed (at most 0)${problems}; ${(share * 100).toFixed(1)} % of a core; p50 ${quantile(took, 0.5).toFixed(0)} ms, p99 ${quantile(took, 0.99).toFixed(0)} ms, users and their provider on the same cores; ${before} MiB before, ${after} MiB after.`
  } finally {
    await sockets.closeAll()
  }
}
