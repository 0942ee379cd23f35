/**
 * What a signed request costs against one with a static bearer token, through the real proxy with the same verified
 * callers, CPU of the proxy's process, in alternating rounds:
 *
 *   node bench/load/signed.ts
 *
 * Budgets: a signed 1 KiB POST at most 1.6 × the CPU of `bearerToken`; 200 callers no dearer than one (15 % for the noise
 * of the machine). Exit code 1 when exceeded.
 */
import { spawn } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Pool } from 'undici'
import { cpuOf, forkScript } from '../processes.ts'

const ROUNDS = 15
const REQUESTS = 3_000
const CONNECTIONS = 16
const CALLERS = 200
const ROLE = 'arn:aws:iam::123456789012:role/r'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'sig' }] })
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const expires = Math.floor(Date.now() / 1000) + 3600

const services = createServer((request, response) => {
  request.resume()
  if (request.url === '/jwks') return void response.setHeader('content-type', 'application/json').end(jwks)
  const credentials = `<AccessKeyId>ASIA${'A'.repeat(16)}</AccessKeyId><SecretAccessKey>${'s'.repeat(40)}</SecretAccessKey><SessionToken>${'t'.repeat(900)}</SessionToken><Expiration>${new Date(expires * 1000).toISOString()}</Expiration>`
  response.setHeader('content-type', 'text/xml')
  return void response.end(
    `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>${credentials}</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
  )
})
services.listen(0, '127.0.0.1')
await once(services, 'listening')
const url = `http://127.0.0.1:${(services.address() as AddressInfo).port}`

const token = (index: number): string => {
  const input = `${encode({ alg: 'RS256', kid: 'k' })}.${encode({ iss: url, aud: 'bench', sub: `caller-${index}`, exp: expires })}`
  return `${input}.${sign('sha256', Buffer.from(input), privateKey).toString('base64url')}`
}

const manifests = (backend: string): string => `
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: bearer }
spec: { type: bearerToken, bearerToken: { tokenSecretRef: { name: bench, key: token } } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: signed }
spec: { type: cloudSts, cloudSts: { region: eu-central-1, fallbackRoleArn: "${ROLE}" } }
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: bench }
spec:
  secretsDirectory: ./secrets
  auth: { mode: oauth, oauth: { resourceUrl: "http://127.0.0.1:1", providers: [{ name: p, issuerUrl: "${url}", audience: bench, jwksUrl: "${url}/jwks", allowPrivateIP: true }] } }
  routes:
    - { name: bearer, path: /bearer, target: "${backend}/mcp", externalAuthConfigRef: { name: bearer } }
    - { name: signed, path: /signed, target: "${backend}/mcp", externalAuthConfigRef: { name: signed } }
`

const directory = mkdtempSync(path.join(tmpdir(), 'extauth-bench-'))
mkdirSync(path.join(directory, 'secrets', 'bench'), { recursive: true })
writeFileSync(path.join(directory, 'secrets', 'bench', 'token'), 'a-token')
const backend = await forkScript('backend.ts')
writeFileSync(path.join(directory, 'proxy.yaml'), manifests(backend.url))
const port = 20_000 + (process.pid % 20_000)
const proxy = spawn(
  process.execPath,
  [
    'bin/extauth.cjs',
    'proxy',
    '--config',
    path.join(directory, 'proxy.yaml'),
    '--listen',
    `127.0.0.1:${port}`,
    '--admin',
    `127.0.0.1:${port + 1}`,
    '--sts-endpoint',
    url,
    '--log-level',
    'warn',
  ],
  { stdio: ['ignore', 'ignore', 'inherit'], cwd: path.join(import.meta.dirname, '../..') },
)
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
const tokens = Array.from({ length: CALLERS }, (_, index) => token(index))
const body = JSON.stringify('x'.repeat(1022))

async function post(route: string, callers: number, index: number): Promise<void> {
  const headers = {
    authorization: `Bearer ${tokens[index % callers]}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25',
  }
  const answer = await pool.request({ path: `/${route}`, method: 'POST', headers, body })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(`${route} answered ${answer.statusCode} ${text}`)
}

/** CPU microseconds of the proxy per request. */
async function measure(route: string, callers: number): Promise<number> {
  let next = 0
  const before = cpuOf(proxy.pid ?? 0)
  const worker = async () => {
    while (next < REQUESTS) await post(route, callers, next++)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  return (cpuOf(proxy.pid ?? 0) - before) / 1000 / REQUESTS
}

async function untilReady(): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    try {
      return await post('bearer', 1, 0)
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  throw new Error('the proxy does not answer')
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const out = (text: string) => process.stdout.write(`${text}\n`)

try {
  await untilReady()
  const ways = [
    { name: 'bearerToken, one caller', route: 'bearer', callers: 1, values: [] as number[] },
    { name: 'cloudSts, one caller', route: 'signed', callers: 1, values: [] as number[] },
    { name: `cloudSts, ${CALLERS} callers`, route: 'signed', callers: CALLERS, values: [] as number[] },
  ]
  for (const { route, callers } of ways) await measure(route, callers)
  for (let round = 0; round < ROUNDS; round++) {
    for (const { route, callers, values } of round % 2 === 0 ? ways : ways.toReversed())
      values.push(await measure(route, callers))
  }
  for (const { name, values } of ways)
    out(`${name.padEnd(26)} ${median(values).toFixed(1).padStart(7)} µs CPU per request`)
  const [bearer = [], one = [], many = []] = ways.map(({ values }) => values)
  const ratio = (of: readonly number[], to: readonly number[]) =>
    median(of.map((value, round) => value / (to[round] ?? Number.NaN)))
  for (const [what, value, limit] of [
    ['a signed 1 KiB POST / one with a bearer token', ratio(one, bearer), 1.6],
    [`${CALLERS} callers / one`, ratio(many, one), 1.15],
  ] as const) {
    out(`${value <= limit ? 'kept    ' : 'EXCEEDED'} ${what}: ${value.toFixed(2)} (at most ${limit})`)
    if (value > limit) process.exitCode = 1
  }
} finally {
  proxy.kill()
  await pool.destroy()
  await backend.stop()
  services.close()
  services.closeAllConnections()
  rmSync(directory, { recursive: true, force: true })
}
