import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runProxy, type RunningProxy } from '../../../src/compose/proxy/process.ts'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { extauth } from '../../support/e2e/process.ts'
import { APPLICATION, type Deployment, OPERATOR, startDeployment } from '../../support/redis/deployment.ts'

// Files and store of the version before, as it wrote them (test/fixtures/previous-version/README.md).
const FIXTURE = path.join(import.meta.dirname, '../../fixtures/previous-version')
const STORE = JSON.parse(readFileSync(path.join(FIXTURE, 'store.json'), 'utf8')) as {
  readonly savedMs: number
  readonly login: { readonly client_id: string; readonly access_token: string; readonly refresh_token: string }
  readonly keys: Readonly<Record<string, { readonly ttlMs: number; readonly dump: string }>>
}
const DAY_MS = 24 * 60 * 60 * 1000

/** Authorization headers that the backend received. */
const received: (string | undefined)[] = []
const problems: string[] = []
/** Warnings about this test's world: another time of day than Redis has, and no identity provider. */
const EXPECTED = /^store clock differs|^upstream refresh failed .*"identity_provider_unavailable"/
let backend: Server
let deployment: Deployment
let folder: string
let proxy: RunningProxy

async function restoreStore(port: number): Promise<void> {
  const redis = new Redis({ host: '127.0.0.1', port, ...OPERATOR })
  try {
    for (const [key, { ttlMs, dump }] of Object.entries(STORE.keys))
      await redis.restore(key, ttlMs < 0 ? 0 : DAY_MS, Buffer.from(dump, 'base64'))
  } finally {
    redis.disconnect()
  }
}

/** The configuration of the fixture, with the addresses of this test. */
function putConfig(backendPort: number, sentinelPort: number | undefined): void {
  folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-previous-'))
  cpSync(path.join(FIXTURE, 'config'), folder, { recursive: true })
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.yaml'))) {
    const text = readFileSync(path.join(folder, name), 'utf8')
      .replaceAll('127.0.0.1:18083', `127.0.0.1:${backendPort}`)
      .replaceAll('masterName: lab', 'masterName: mymaster')
      .replaceAll(/(sentinelAddrs:\s+- 127\.0\.0\.1:)\d+/g, `$1${sentinelPort}`)
    writeFileSync(path.join(folder, name), text)
  }
  writeFileSync(path.join(folder, 'secrets/lab-replicas/redis-username'), APPLICATION.username)
  writeFileSync(path.join(folder, 'secrets/lab-replicas/redis-password'), APPLICATION.password)
}

async function start(nowMs: number): Promise<void> {
  // Timers stay real: only the time of day is that of the records.
  vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
  const problem = (fields: object, message: string): void => {
    const line = `${message} ${JSON.stringify(fields)}`
    if (!EXPECTED.test(line)) problems.push(line)
  }
  const ignore = (): void => undefined
  proxy = await runProxy({
    configPaths: [folder],
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    env: {},
    log: { debug: ignore, info: ignore, warn: problem, error: problem },
    drainGraceMs: 500,
  })
}

const callUpstream = async (token: string): Promise<number> =>
  (await post(`${proxy.url}/upstream`, INITIALIZE, { authorization: `Bearer ${token}` })).status

async function refresh(): Promise<{ readonly status: number; readonly body: Readonly<Record<string, string>> }> {
  const { client_id, refresh_token } = STORE.login
  const form = { grant_type: 'refresh_token', client_id, refresh_token }
  const response = await fetch(`${proxy.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  return { status: response.status, body: (await response.json()) as Readonly<Record<string, string>> }
}

beforeEach(async () => {
  backend = createServer((request, response) => {
    received.push(request.headers.authorization)
    response.setHeader('content-type', 'application/json').end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
  deployment = await startDeployment()
  await restoreStore(deployment.nodes[0]?.port ?? 0)
  putConfig((backend.address() as AddressInfo).port, deployment.sentinels[0]?.port)
}, 120_000)
afterEach(async () => {
  vi.useRealTimers()
  await proxy?.close()
  await deployment.close()
  backend.closeAllConnections()
  backend.close()
  rmSync(folder, { recursive: true, force: true })
  received.splice(0)
  problems.splice(0)
})

describe('files and store of the previous version', { timeout: 120_000 }, () => {
  it('are valid, and serve the logins and credentials in them', async () => {
    const validate = extauth(['validate', folder])
    expect([await validate.ended, validate.printed()]).toEqual([0, expect.stringContaining('0 problems, 0 warnings')])

    await start(STORE.savedMs + 60_000)
    expect(await callUpstream(STORE.login.access_token)).toBe(200)
    const renewed = await refresh()
    expect(renewed).toMatchObject({ status: 200, body: { token_type: expect.stringMatching(/^bearer$/i) as string } })
    expect(await callUpstream(renewed.body['access_token'] ?? '')).toBe(200)
    const [first, second] = received
    expect(first).toMatch(/^Bearer \S+$/)
    expect(second).toBe(first)
    expect(problems).toEqual([])
  })

  it('lead to a new login, without an error, when what they hold has expired', async () => {
    await start(STORE.savedMs + 60 * DAY_MS)
    expect(await callUpstream(STORE.login.access_token)).toBe(401)
    expect(await refresh()).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(received).toEqual([])
    expect(problems).toEqual([])
  })
})
