import { createServer, type Server, type ServerResponse } from 'node:http'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runProxy, type RunningProxy } from '../../../src/compose/proxy/process.ts'
import { recordLog } from '../../support/e2e/lab.ts'
import { CHROMIUM_START_MS, startChromium } from '../../support/chromium.ts'
import { openPage } from '../../support/inspect/browser.ts'

const EVIL = `<img src=x onerror="document.title='owned'"></script><script>document.title='owned'</script>`
const TURNED = 'ab\u202ecba\u2066x\u200f'
const TOOL = {
  name: EVIL,
  description: `${EVIL}${TURNED}`,
  inputSchema: { type: 'object', properties: { [EVIL]: { type: 'string', title: EVIL, description: EVIL } } },
}

/** A hostile MCP server: all of its texts are markup, and `/stream` continues until the test ends it. */
function hostile(): Server & { say: (text: string) => void } {
  let live: ServerResponse | undefined
  const server = createServer({ maxHeaderSize: 2 ** 21 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.flushHeaders()
        live = response
        return
      }
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString() || '{}') as { id?: number; method?: string }
      const result = {
        'server/discover': { serverInfo: { name: EVIL, version: EVIL }, capabilities: { tools: {} } },
        'tools/list': { tools: [TOOL] },
        'tools/call': {
          content: [
            { type: 'text', text: `${EVIL}${TURNED}` },
            { type: EVIL, mimeType: EVIL },
          ],
        },
      }[method ?? '']
      response.writeHead(200, {
        'content-type': 'application/json',
        'x-evil': EVIL,
        'x-many': Array(40).fill('y'.repeat(300)),
      })
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: EVIL } }) }),
      )
    })
  })
  return Object.assign(server, {
    say: (text: string) => void (text === '' ? live?.end() : live?.write(`data: ${text}\n\n`)),
  })
}

let backend: ReturnType<typeof hostile>
let proxy: RunningProxy
let browser: Browser
let folder: string
beforeAll(async () => {
  backend = hostile()
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
  folder = await mkdtemp(path.join(os.tmpdir(), 'inspect-'))
  const file = path.join(folder, 'proxy.yaml')
  const target = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`
  await writeFile(
    file,
    `apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: hostile }
spec:
  listen: { headerLimit: 1Mi }
  admin: { inspector: bodies }
  auth: { mode: anonymous }
  routes:
    - { name: hostile, path: /, target: '${target}', externalAuthConfigRef: { name: none } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: none }
spec: { type: unauthenticated }
`,
  )
  proxy = await runProxy({
    configPaths: [file],
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    env: {},
    drainGraceMs: 200,
    log: recordLog(),
  })
  browser = await startChromium()
}, CHROMIUM_START_MS)
afterAll(async () => {
  await browser?.close()
  await proxy?.close()
  backend?.closeAllConnections()
  backend?.close()
  await rm(folder, { recursive: true, force: true })
})

describe('the page', () => {
  it('shows what is hostile as text: in targets, headers, names, bodies and results', async () => {
    const { page, troubles, close } = await openPage(browser, proxy.inspectUrl ?? '')
    const headers = {
      'x-note': EVIL,
      'content-type': 'application/json',
      'mcp-method': 'tools/call',
      'mcp-name': EVIL,
      ...Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`x-long-${index}`, 'z'.repeat(3300)])),
    }
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: EVIL, arguments: { a: TURNED } },
    })
    const answer = await fetch(`${proxy.url}/%3Cimg%20src=x%3E?q=${encodeURIComponent(EVIL)}`, {
      method: 'POST',
      headers,
      body,
    })
    expect(answer.status).toBe(200)
    const row = page.locator('tr.row').first()
    await row.waitFor()
    expect(await row.locator('.what').innerText()).toContain(EVIL)
    await row.locator('a').click()
    const request = page.getByRole('region', { name: 'Request', exact: true })
    await request.getByRole('region', { name: 'Bodies' }).waitFor()
    const text = await request.innerText()
    expect(text.split('<img src=x onerror').length).toBeGreaterThan(6)
    // Nothing turns the direction of the text around: the marks are written out.
    expect(text).toContain(String.raw`ab\u202ecba\u2066x\u200f`)
    expect(text).not.toMatch(/[\u202e\u2066\u200f]/)

    await page.goto(`${proxy.inspectUrl}#/try`)
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    await page.locator('button.choice').first().click()
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    const outcome = page.getByRole('region', { name: 'Outcome' })
    await outcome.getByText('Done.').waitFor()
    // The masked part arrives a moment later.
    await outcome.locator('.content').waitFor()
    expect(await outcome.innerText()).toContain(EVIL)
    expect(await page.getByRole('region', { name: 'Chosen' }).innerText()).toContain(EVIL)
    expect(await page.evaluate(`document.querySelectorAll('img, script:not([type=module])').length`)).toBe(0)
    expect(await page.title()).toBe('extauth inspector')
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('shows a stream growing while it is open, and its end', async () => {
    const { page, troubles, close } = await openPage(browser, proxy.inspectUrl ?? '')
    const controller = new AbortController()
    const stream = await fetch(`${proxy.url}/stream`, {
      headers: { accept: 'text/event-stream' },
      signal: controller.signal,
    })
    const row = page.locator('tr.row', { hasText: 'open' }).first()
    await row.waitFor()
    await row.locator('a').click()
    const events = page.locator('.events li:not(.end)')
    await page.getByRole('region', { name: 'Bodies' }).waitFor()
    for (const count of [1, 2, 3]) {
      backend.say(JSON.stringify({ jsonrpc: '2.0', method: `notifications/number-${count}` }))
      await page.getByText(`notification notifications/number-${count}`).waitFor()
      await expect.poll(() => events.count()).toBe(count)
    }
    backend.say(JSON.stringify({ text: EVIL }))
    await expect.poll(() => events.count()).toBe(4)
    backend.say('')
    await stream.text()
    await page.getByText('4 events').waitFor()
    expect(troubles).toEqual([])
    controller.abort()
    await close()
  }, 60_000)
})
