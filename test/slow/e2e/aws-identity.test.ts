import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CONTAINER_PATH, startLabMetadata } from '../../../lab/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { extauth } from '../../support/e2e/process.ts'
import { authConfig, configFolder, freePort, proxyConfig } from '../../support/e2e/run.ts'

/** Lifetime of a set of keys in milliseconds; renewed at half of it. */
const LIFE_MS = 6_000
/** Sets of keys that the load sees. */
const GENERATIONS = 3
const POD_TOKEN = 'the-token-of-the-pod'

const sockets = createSockets()
let url: string
let made = 0
/** Which keys requests came with, oldest first. */
const seen: string[] = []
const keyOf = (generation: number) => `ASIAROTATION0000${String(generation).padStart(4, '0')}`

beforeAll(async () => {
  const metadata = await startLabMetadata({
    port: 0,
    roleName: 'node',
    containerToken: POD_TOKEN,
    credentials: () => ({
      accessKeyId: keyOf(++made),
      secretAccessKey: 'secret',
      sessionToken: `session-${made}`,
      expiresAtMs: Date.now() + LIFE_MS,
    }),
  })
  sockets.closing(metadata)
  const backend = createServer((request, response) => {
    request.resume()
    seen.push(/Credential=([^/]+)/.exec(request.headers.authorization ?? '')?.[1] ?? 'nobody')
    response.setHeader('content-type', 'application/json').end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
  sockets.closing({ close: () => new Promise((resolve) => (backend.close(resolve), backend.closeAllConnections())) })
  const target = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/mcp`
  const cloudSts = {
    region: 'eu-central-1',
    service: 'execute-api',
    source: { type: 'ambient', chain: ['podIdentity'] },
  }
  const folder = await configFolder({
    'pod/token': POD_TOKEN,
    'service.json': authConfig('service', { type: 'cloudSts', cloudSts }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: [{ name: 'service', path: '/mcp', target, externalAuthConfigRef: { name: 'service' } }],
    }),
  })
  sockets.closing({ close: folder.remove })
  const listen = `127.0.0.1:${await freePort()}`
  url = `http://${listen}/mcp`
  const args = ['--config', folder.directory, '--listen', listen, '--admin', '127.0.0.1:0']
  const proxy = extauth(['proxy', ...args], {
    env: {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: metadata.url + CONTAINER_PATH,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: path.join(folder.directory, 'pod/token'),
      // The egress proxy is closed: requests through it fail.
      HTTP_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: new URL(target).host,
    },
  })
  sockets.closing({ close: () => (proxy.process.kill('SIGKILL'), proxy.ended) })
  await proxy.line('listening')
}, 60_000)
afterAll(() => sockets.closeAll())

const ask = async (): Promise<number> => {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const response = await fetch(url, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}

describe('the identity of a started proxy', () => {
  it('changes under load without failures; requests to metadata services bypass the egress proxy', async () => {
    const statuses = new Map<number, number>()
    const worker = async () => {
      while (new Set(seen).size < GENERATIONS) {
        const status = await ask()
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    expect([...statuses.keys()]).toEqual([200])
    expect([...new Set(seen)]).toEqual([...new Set(seen)].toSorted())
  }, 120_000)
})
