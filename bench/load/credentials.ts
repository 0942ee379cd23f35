/**
 * Cost of a request's credential, by type, through the real proxy: CPU of its process per request in alternating
 * rounds, and ratios to `bearerToken` with the same verified callers:
 *
 *   node bench/load/credentials.ts
 *
 * The exchanged token is as long as the static one, so that what differs is how it is come by. Budgets: a signed 1 KiB POST
 * at most 1.6 × the CPU of `bearerToken`; 200 callers no dearer than one (15 % for the noise of the machine). Exit code 1
 * when exceeded. The cost of a cached exchange is too small for this; see `bench/micro/cache.ts`.
 */
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Pool } from 'undici'
import { freePort } from '../../lab/free-port.ts'
import { cpuOf, forkScript, LAUNCHER, startProcess } from '../processes.ts'

const ROUNDS = 91
const REQUESTS = 500
const CONNECTIONS = 16
const CALLERS = 200
const STATIC_TOKEN = 'static-token'
const EXCHANGED_TOKEN = 'issued-token'
const ROLE = 'arn:aws:iam::123456789012:role/r'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'sig' }] })
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const expires = Math.floor(Date.now() / 1000) + 3600

const exchanged = JSON.stringify({
  access_token: EXCHANGED_TOKEN,
  issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  token_type: 'Bearer',
  expires_in: 3600,
})

let exchanges = 0
const services = createServer((request, response) => {
  request.resume()
  if (request.url === '/jwks') return void response.setHeader('content-type', 'application/json').end(jwks)
  if (request.url === '/token') {
    exchanges += 1
    return void response.setHeader('content-type', 'application/json').end(exchanged)
  }
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
metadata: { name: exchange }
spec: { type: tokenExchange, tokenExchange: { tokenUrl: "${url}/token", audience: backend, clientId: proxy, clientSecretRef: { name: bench, key: client-secret } } }
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
    - { name: anonymous, path: /anonymous, target: "${backend}/mcp", externalAuthConfigRef: { name: bearer }, auth: { mode: anonymous } }
    - { name: exchange, path: /exchange, target: "${backend}/mcp", externalAuthConfigRef: { name: exchange } }
    - { name: signed, path: /signed, target: "${backend}/mcp", externalAuthConfigRef: { name: signed } }
`

const directory = mkdtempSync(path.join(tmpdir(), 'extauth-bench-'))
mkdirSync(path.join(directory, 'secrets', 'bench'), { recursive: true })
writeFileSync(path.join(directory, 'secrets', 'bench', 'token'), STATIC_TOKEN)
writeFileSync(path.join(directory, 'secrets', 'bench', 'client-secret'), 'a-secret')
const backend = await forkScript('backend.ts')
writeFileSync(path.join(directory, 'proxy.yaml'), manifests(backend.url))
const port = await freePort()
const config = ['--config', path.join(directory, 'proxy.yaml'), '--listen', `127.0.0.1:${port}`]
const more = ['--admin', '127.0.0.1:0', '--sts-endpoint', url, '--log-level', 'warn']
const proxy = await startProcess([LAUNCHER, 'proxy', ...config, ...more], port, '')
const pool = new Pool(proxy.url, { connections: CONNECTIONS })
const tokens = Array.from({ length: CALLERS }, (_, index) => token(index))
const body = JSON.stringify('x'.repeat(1022))

/** A request of a caller, or an anonymous one when there are no callers. */
async function post(route: string, callers: number, index: number): Promise<void> {
  const headers = {
    ...(callers === 0 ? {} : { authorization: `Bearer ${tokens[index % callers]}` }),
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
  const before = cpuOf(proxy.pid)
  const worker = async () => {
    while (next < REQUESTS) await post(route, callers, next++)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  return (cpuOf(proxy.pid) - before) / 1000 / REQUESTS
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const out = (text: string) => process.stdout.write(`${text}\n`)

try {
  const way = (name: string, route: string, callers: number) => ({ name, route, callers, values: [] as number[] })
  const anonymous = way('bearerToken, anonymous', 'anonymous', 0)
  const bearer = way('bearerToken, a verified caller', 'bearer', 1)
  const exchange = way('tokenExchange cached, one caller', 'exchange', 1)
  const signed = way('cloudSts, one caller', 'signed', 1)
  const signedMany = way(`cloudSts, ${CALLERS} callers`, 'signed', CALLERS)
  const ways = [anonymous, bearer, exchange, signed, signedMany]
  for (const { route, callers } of ways) await measure(route, callers)
  for (let round = 0; round < ROUNDS; round++) {
    // Each comes after each other as often as before it, and none always first.
    const turned = ways.map((_, index) => ways[(index + round) % ways.length] ?? anonymous)
    for (const { route, callers, values } of round % 2 === 0 ? turned : turned.toReversed())
      values.push(await measure(route, callers))
  }
  out(`medians of ${ROUNDS} rounds of ${REQUESTS} requests of 1 KiB; ${exchanges} exchange(s)`)
  for (const { name, values } of ways)
    out(`  ${name.padEnd(32)} ${median(values).toFixed(1).padStart(7)} µs CPU per request`)
  const ratio = (of: { values: readonly number[] }, to: { values: readonly number[] }) =>
    median(of.values.map((value, round) => value / (to.values[round] ?? Number.NaN)))
  out(`  bearerToken, a verified caller / anonymous: ${ratio(bearer, anonymous).toFixed(2)}`)
  out(`  tokenExchange cached / bearerToken, the same caller: ${ratio(exchange, bearer).toFixed(2)}`)
  for (const [what, value, limit] of [
    ['a signed 1 KiB POST / one with a bearer token', ratio(signed, bearer), 1.6],
    [`${CALLERS} callers / one`, ratio(signedMany, signed), 1.15],
  ] as const) {
    const isKept = value <= limit
    out(`${isKept ? 'kept    ' : 'EXCEEDED'} ${what}: ${value.toFixed(2)} (at most ${limit})`)
    if (!isKept) process.exitCode = 1
  }
} finally {
  await proxy.stop()
  await pool.destroy()
  await backend.stop()
  services.close()
  services.closeAllConnections()
  rmSync(directory, { recursive: true, force: true })
}
