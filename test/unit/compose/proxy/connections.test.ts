import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { buildCandidate, createServices, loadModules } from '../../../../src/compose/proxy/index.ts'
import { parseDocuments, resolveProxy } from '../../../../src/load/index.ts'
import { Browser } from '../../../support/authserver/browser.ts'
import { externalAuth, proxy } from '../../../support/load/documents/build.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import { runtimeOf, startProxy } from '../../../support/proxy/harness.ts'
import { createSockets } from '../../../support/sockets.ts'

const sockets = createSockets()
let directory = ''
afterEach(async () => {
  await sockets.closeAll()
  await rm(directory, { recursive: true, force: true })
})

test('a configuration with connections: the link of the first request leads to the credential of the next', async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'connections-'))
  const received: unknown[] = []
  const backend = await sockets.http((request, response) => {
    received.push(request.headers['x-api-key'])
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  const documents = [
    proxy({
      auth: { mode: 'anonymous' },
      connections: { singleUser: true, providers: [{ name: 'tracker', type: 'secret', secret: { label: 'API key' } }] },
      routes: [{ name: 'code', path: '/code', target: `${backend}/mcp`, externalAuthConfigRef: { name: 'key' } }],
    }),
    externalAuth(
      { type: 'headerInjection', headerInjection: { headerName: 'X-Api-Key', connectionName: 'tracker' } },
      'key',
    ),
  ]
  const text = documents.map((document) => JSON.stringify(document)).join('\n---\n')
  const { config } = resolveProxy(parseDocuments([{ path: path.join(directory, 'proxy.yaml'), text }]), {})
  if (config === undefined) throw new Error('not resolved')

  const served = await startProxy(sockets, runtimeOf([]))
  const log = createRecordingLog()
  const services = createServices({ ...config, stsEndpoint: undefined, env: {}, log, clock: createManualClock() })
  const candidate = await buildCandidate(config, served.url, services, await loadModules(config))
  await candidate.prepared()
  served.swap(candidate.runtime)
  candidate.activate()

  const call = () =>
    fetch(`${served.url}/code`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search', arguments: {} } }),
    })
  const first = await call()
  expect(first.status).toBe(200)
  expect(received).toEqual([])
  const link = /http:[^\s"\\]*\/connect\/[A-Za-z0-9_-]{32}/.exec(await first.text())?.[0] ?? ''
  const browser = new Browser()
  const form = await browser.get(link)
  const html = form.html.replace(
    '<input type="hidden"',
    '<input type="hidden" name="key" value="k-1" /><input type="hidden"',
  )
  expect((await browser.press({ ...form, html }, 'continue')).status).toBe(200)
  expect((await call()).status).toBe(200)
  expect(received).toEqual(['k-1'])
  await served.drain(0)
  await candidate.runtime.close()
  await services.stores.close()
})
