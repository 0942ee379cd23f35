/**
 * Effect on callers when Redis is killed (kill -9) while replicas share credentials in it (`ProxyConfig.spec.cache`):
 *
 *   node bench/load/outage.ts [--seconds 60] [--requests 500]
 *
 * Two replicas, 200 callers whose credentials are live, and two callers a second who are new. Budgets: no request fails; the p99
 * of those with a live credential grows by at most 50 ms more than that of requests straight to the backend, which tell what else
 * this machine does; 5 s after Redis is back a credential that one replica fetches is used
 * by the other. Exit code 1 when exceeded.
 */
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { CALL, MCP } from '../../test/support/e2e/credentials.ts'
import { fleetFolder, openFleet } from '../../test/support/e2e/fleet.ts'
import { extauth } from '../../test/support/e2e/process.ts'
import { startDeployment } from '../../test/support/redis/deployment.ts'
import { forkScript } from '../processes.ts'
import { budget, keepPace, pause, problemsOf, quantile, say, tookMs } from './pace.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string' }, requests: { type: 'string' } } })
const seconds = Number(values.seconds ?? 60)
const requestsPerSecond = Number(values.requests ?? 500)
const CALLERS = 200
const BEFORE_MS = 10_000
const NEW_PER_SECOND = 2
const DIRECT_PER_SECOND = 100
const AGAIN_MS = 5_000

const deployment = await startDeployment()
const backend = await forkScript('backend.ts')
const fleet = await openFleet(0, deployment.sentinels, {
  routes: [{ name: 'one', path: '/one', target: `${backend.url}/mcp`, externalAuthConfigRef: { name: 'one' } }],
})
const folder = await fleetFolder(fleet)
const args = ['proxy', '--config', folder.directory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
const replicas = [extauth(args), extauth(args)]
try {
  const urls = await Promise.all(replicas.map(async (one) => (await one.line('listening')) as { url: string }))
  const pools = urls.map(({ url }) => new Pool(url, { connections: 32 }))
  const call = async (replica: number, caller: Readonly<Record<string, string>>): Promise<void> => {
    const pool = pools[replica]
    if (pool === undefined) throw new RangeError('no such replica')
    const { statusCode, body } = await pool.request({
      path: '/one',
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...MCP,
        ...caller,
      },
      body: JSON.stringify(CALL),
    })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(`${statusCode} ${/"reason":"(\w+)"/.exec(text)?.[1] ?? ''}`)
  }

  const callers = await Promise.all(Array.from({ length: CALLERS }, (_, index) => fleet.bearer(`caller-${index}`)))
  for (const caller of callers) for (const replica of [0, 1]) await call(replica, caller)
  const direct = new Pool(backend.url, { connections: 8 })
  const control = keepPace(DIRECT_PER_SECOND, async () => {
    const { body } = await direct.request({ path: '/mcp', method: 'POST', body: '{}' })
    await body.text()
  })
  const known = keepPace(requestsPerSecond, (index) => call(index % 2, callers[index % CALLERS] ?? {}))
  const fresh = keepPace(NEW_PER_SECOND, async (index) => call(index % 2, await fleet.bearer(`new-${index}`)))
  await pause(BEFORE_MS)
  const goneAt = performance.now()
  await deployment.nodes[0]?.kill()
  await pause(seconds * 1000)
  const backAt = performance.now()
  await deployment.nodes[0]?.restart()
  await pause(Math.max(0, AGAIN_MS - (performance.now() - backAt)))
  await Promise.all([known.stop(), fresh.stop(), control.stop()])
  const before = fleet.exchanges()
  const later = await fleet.bearer('later')
  for (const replica of [0, 1]) await call(replica, later)
  const shared = fleet.exchanges() - before

  const calm = tookMs(known.outcomes, goneAt - BEFORE_MS, goneAt)
  const without = tookMs(known.outcomes, goneAt, backAt)
  const strangers = tookMs(fresh.outcomes, goneAt, backAt)
  const [calmDirect, directWithout] = [
    tookMs(control.outcomes, goneAt - BEFORE_MS, goneAt),
    tookMs(control.outcomes, goneAt, backAt),
  ]
  const others = quantile(directWithout, 0.99) - quantile(calmDirect, 0.99)
  const added = quantile(without, 0.99) - quantile(calm, 0.99) - others
  const failed = [...known.outcomes, ...fresh.outcomes].filter(({ problem }) => problem !== undefined)
  const ms = (value: number) => `${value.toFixed(0)} ms`
  say(
    `${without.length} requests in ${seconds} s without Redis: p50 ${ms(quantile(without, 0.5))}, p99 ${ms(quantile(without, 0.99))}`,
  )
  say(
    `${calm.length} requests in the ${BEFORE_MS / 1000} s before: p50 ${ms(quantile(calm, 0.5))}, p99 ${ms(quantile(calm, 0.99))}`,
  )
  say(
    `${strangers.length} callers who were new meanwhile: p50 ${ms(quantile(strangers, 0.5))}, p99 ${ms(quantile(strangers, 0.99))}`,
  )
  say(`straight to the backend: p99 ${ms(quantile(directWithout, 0.99))}, before ${ms(quantile(calmDirect, 0.99))}`)
  budget(`requests that failed ${JSON.stringify(problemsOf(failed))}`, failed.length, 0)
  budget('added p99 of a request with a live credential, ms', added, 50)
  budget('exchanges for a caller at both replicas, 5 s after Redis was back', shared, 1)
  await Promise.all([direct, ...pools].map((pool) => pool.close()))
} finally {
  for (const one of replicas) one.process.kill('SIGKILL')
  await Promise.all(replicas.map((one) => one.ended))
  await folder.remove()
  await fleet.close()
  await backend.stop()
  await deployment.close()
}
