import { createServer } from 'node:https'
import { writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())
const PATIENT = { timeout: 30_000, interval: 50 }

/** A manifest of a remote server. */
const manifest = (kind: string, spec: object): string =>
  JSON.stringify({ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, metadata: { name: 'tenant' }, spec })
const HEADER_FORWARD = {
  addPlaintextHeaders: { 'X-Tenant-Id': '42' },
  addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'tenant', key: 'api-key' } }],
}

/** The started program with these files; nothing of it is checked but what it does. */
async function start(files: Readonly<Record<string, string | Buffer>>, ...options: readonly string[]) {
  const places = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--secrets-dir', '{dir}/secrets']
  const running = await startWith(sockets, files, ['proxy', '--config', '{dir}/tenant.json', ...places, ...options])
  const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
  return { running, url, admin }
}

it('headers of a manifest reach its backend with each request, secrets as they are now, and callers can set none of them', async () => {
  const seen: IncomingHttpHeaders[] = []
  const remoteUrl = await sockets.http((request, response) => {
    seen.push(request.headers)
    response.end(`received ${String(request.headers['x-api-key'])}`)
  })
  const { running, url, admin } = await start(
    {
      'tenant.json': manifest('MCPRemoteProxy', { remoteUrl: `${remoteUrl}/mcp`, headerForward: HEADER_FORWARD }),
      'secrets/tenant/api-key': 'the-first-key-of-the-tenant\n',
    },
    '--inspector',
    'bodies',
  )
  const answers: Response[] = []
  const call = async (): Promise<void> => {
    answers.push(await fetch(url, { headers: { 'x-tenant-id': '7', X_Api_Key: 'of-the-caller', 'x-own': 'stays' } }))
  }
  await call()
  expect(answers[0]?.status).toBe(200)
  expect(seen[0]).toMatchObject({ 'x-tenant-id': '42', 'x-api-key': 'the-first-key-of-the-tenant', 'x-own': 'stays' })
  expect(JSON.stringify(seen[0])).not.toContain('of-the-caller')

  await writeFile(path.join(running.directory, 'secrets/tenant/api-key'), 'the-second-key-of-the-tenant\n')
  await vi.waitFor(async () => {
    await call()
    expect(seen.at(-1)?.['x-api-key']).toBe('the-second-key-of-the-tenant')
  }, PATIENT)

  const shown = await (await fetch(`${admin}/config`)).text()
  expect(shown).toContain('X-Api-Key')
  const ids = answers.map((response) => response.headers.get('x-request-id') ?? '')
  const records = await Promise.all(ids.map(async (id) => fetch(`${admin}/inspect/api/requests/${id}`)))
  const texts = await Promise.all(records.map((record) => record.text()))
  expect(texts.join('')).toContain('x-api-key')
  const output = [shown, running.stdout(), running.stderr(), ...texts].join('\n')
  for (const secret of ['the-first-key', 'the-second-key']) expect(output).not.toContain(secret)
}, 60_000)

it('without its secret a request is answered 500 and never sent without it', async () => {
  let requests = 0
  const remoteUrl = await sockets.http((_, response) => {
    requests += 1
    response.end('fine')
  })
  const { url, admin } = await start({
    'tenant.json': manifest('MCPServerEntry', { remoteUrl: `${remoteUrl}/mcp`, headerForward: HEADER_FORWARD }),
  })
  const response = await fetch(url)
  expect([response.status, await response.text()]).toEqual([500, expect.stringContaining('secret_unavailable')])
  expect(requests).toBe(0)
  const readiness = await fetch(`${admin}/readiness`)
  expect(await readiness.text()).toContain('headerForward.addHeadersFromSecret.0.valueSecretRef')
}, 60_000)

it('check shows the backend the same headers, and names a secret that is missing', async () => {
  const remoteUrl = await sockets.http((request, response) => {
    const isKnown = request.headers['x-tenant-id'] === '42' && request.headers['x-api-key'] === 'the-key'
    const serverInfo = { name: 'tenant', version: '1' }
    const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo }
    response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  })
  const files = {
    'tenant.json': manifest('MCPServerEntry', { remoteUrl: `${remoteUrl}/mcp`, headerForward: HEADER_FORWARD }),
  }
  const check = async (more: Readonly<Record<string, string>>): Promise<string> => {
    const args = ['check', '-v', '--config', '{dir}/tenant.json', '--secrets-dir', '{dir}/secrets']
    const running = await startWith(sockets, { ...files, ...more }, args)
    await running.ended
    return running.stdout() + running.stderr()
  }
  expect(await check({ 'secrets/tenant/api-key': 'the-key' })).toMatch(/tenant .*responds to initialize/)
  const without = await check({ 'secrets/tenant/other': 'the-key' })
  expect(without).toContain('headerForward.addHeadersFromSecret.0.valueSecretRef')
  expect(without).not.toContain('responds to initialize')
}, 60_000)

it('a remote server is trusted by the authorities of its manifest alone', async () => {
  const server = createServer(TLS.server, (_request, response) => void response.end('fine'))
  sockets.closing({
    close: () => {
      server.close().closeAllConnections()
      return Promise.resolve()
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const remoteUrl = `https://localhost:${(server.address() as AddressInfo).port}/mcp`
  const caBundleRef = { configMapRef: { name: 'company-ca', key: 'ca.crt' } }
  const files = (ca: Buffer) => ({
    'tenant.json': manifest('MCPServerEntry', { remoteUrl, caBundleRef }),
    'secrets/company-ca/ca.crt': ca,
  })
  expect(await (await fetch((await start(files(TLS.ca))).url)).text()).toBe('fine')
  expect((await fetch((await start(files(TLS.otherCa))).url)).status).toBe(502)
}, 60_000)
