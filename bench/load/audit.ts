/**
 * What an audit trail costs: CPU per tool call of 1 KiB of two proxies that differ by `audit` only, in alternating rounds:
 *
 *   node bench/load/audit.ts
 *
 * Budget: at most 1.10 × the CPU without one (docs/engineering/performance.md). Exit code 1 when exceeded. Without `audit`
 * the proxy does not read requests, so that the ratio contains their reading; `rules` has it on both sides.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Pool } from 'undici'
import { freePort } from '../../lab/free-port.ts'
import { cpuOf, forkScript, LAUNCHER, startProcess } from '../processes.ts'

const ROUNDS = 61
const REQUESTS = 500
const CONNECTIONS = 16
const LIMIT = 1.1

const backend = await forkScript('backend.ts')
const directory = mkdtempSync(path.join(tmpdir(), 'extauth-bench-'))
mkdirSync(path.join(directory, 'secrets', 'bench'), { recursive: true })
writeFileSync(path.join(directory, 'secrets', 'bench', 'token'), 'static-token')

const manifests = (audit: string): string => `
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: bearer }
spec: { type: bearerToken, bearerToken: { tokenSecretRef: { name: bench, key: token } } }
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: bench }
spec:
  secretsDirectory: ./secrets
  auth: { mode: anonymous }
  ${audit}
  routes:
    - { name: plain, path: /plain, target: "${backend.url}/mcp", externalAuthConfigRef: { name: bearer } }
    - name: rules
      path: /rules
      target: "${backend.url}/mcp"
      externalAuthConfigRef: { name: bearer }
      authorization: { default: deny, rules: [{ name: reads, tools: ["get_*"], effect: allow }] }
`

async function start(name: string, audit: string) {
  const file = path.join(directory, `${name}.yaml`)
  writeFileSync(file, manifests(audit))
  const port = await freePort()
  const options = ['--config', file, '--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0', '--log-level', 'warn']
  const running = await startProcess([LAUNCHER, 'proxy', ...options], port, '')
  return { running, pool: new Pool(running.url, { connections: CONNECTIONS }) }
}

const proxies = {
  without: await start('without', ''),
  audited: await start('audited', 'audit: { file: ./audit.jsonl }'),
}
type Proxy = keyof typeof proxies

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_it', arguments: { text: '' } } }
call.params.arguments.text = 'x'.repeat(1024 - JSON.stringify(call).length)
const body = JSON.stringify(call)
const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-11-25',
}

/** CPU microseconds of a proxy per request. */
async function measure(proxy: Proxy, route: string): Promise<number> {
  const { running, pool } = proxies[proxy]
  let left = REQUESTS
  const before = cpuOf(running.pid)
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const answer = await pool.request({ path: `/${route}`, method: 'POST', headers, body })
      await answer.body.dump()
      if (answer.statusCode !== 200) throw new Error(`${route} answered ${answer.statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  return (cpuOf(running.pid) - before) / 1000 / REQUESTS
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const out = (text: string): void => void process.stdout.write(`${text}\n`)

try {
  const way = (proxy: Proxy, route: string) => ({ proxy, route, values: [] as number[] })
  const plain = way('without', 'plain')
  const plainAudited = way('audited', 'plain')
  const rules = way('without', 'rules')
  const rulesAudited = way('audited', 'rules')
  const ways = [plain, plainAudited, rules, rulesAudited]
  for (let warm = 0; warm < 4; warm++) for (const { proxy, route } of ways) await measure(proxy, route)
  for (let round = 0; round < ROUNDS; round++) {
    const turned = ways.map((_, index) => ways[(index + round) % ways.length] ?? plain)
    for (const { proxy, route, values } of round % 2 === 0 ? turned : turned.toReversed())
      values.push(await measure(proxy, route))
  }
  out(`medians of ${ROUNDS} rounds of ${REQUESTS} tool calls of 1 KiB`)
  for (const { proxy, route, values } of ways)
    out(`  ${`${route}, ${proxy}`.padEnd(20)} ${median(values).toFixed(1).padStart(7)} µs CPU per request`)
  out(`  ${(statSync(path.join(directory, 'audit.jsonl')).size / 2 ** 20).toFixed(1)} MiB of events`)
  const ratio = (of: typeof plain, to: typeof plain): number =>
    median(of.values.map((value, round) => value / (to.values[round] ?? Number.NaN)))
  for (const [what, value] of [
    ['audit to a file / none, a route without rules', ratio(plainAudited, plain)],
    ['audit to a file / none, a route with rules', ratio(rulesAudited, rules)],
  ] as const) {
    const isKept = value <= LIMIT
    out(`${isKept ? 'kept    ' : 'EXCEEDED'} ${what}: ${value.toFixed(2)} (at most ${LIMIT.toFixed(2)})`)
    if (!isKept) process.exitCode = 1
  }
} finally {
  for (const { running, pool } of Object.values(proxies)) {
    await pool.destroy()
    await running.stop()
  }
  await backend.stop()
  rmSync(directory, { recursive: true, force: true })
}
