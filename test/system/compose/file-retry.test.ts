import { NO_AUDIT } from '../../../src/core/index.ts'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadProxyConfig } from '../../../src/compose/load-config.ts'
import { openMetrics } from '../../../src/report/metrics.ts'
import { createReloader } from '../../../src/compose/proxy/reload.ts'
import type { ResolvedProxy } from '../../../src/load/index.ts'
import { recordLog } from '../../support/e2e/lab.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'
import { TLS } from '../../support/tls.ts'

let root = ''
let folder = ''
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'file-retry-'))
  folder = path.join(root, 'config')
  await mkdir(folder)
  await put('auth.json', authConfig('open', { type: 'unauthenticated' }))
})
afterEach(() => rm(root, { recursive: true }))
const put = (name: string, text: string | Buffer) => writeFile(path.join(folder, name), text)
const routes = (more: object): string =>
  proxyConfig({
    auth: { mode: 'anonymous' },
    routes: [{ name: 'r', path: '/', target: 'https://127.0.0.1:1', externalAuthConfigRef: { name: 'open' }, ...more }],
  })

describe('a reload that a file refused', () => {
  it('is retried automatically, and logs the missing file once', async () => {
    await put('proxy.json', routes({}))
    const sources = { configPaths: [folder] }
    let current: ResolvedProxy = await loadProxyConfig(sources)
    const log = recordLog()
    const metrics = openMetrics()
    const install = (next: ResolvedProxy) => Promise.resolve(void (current = next))
    const reloader = createReloader({
      audit: NO_AUDIT,
      sources,
      current: () => current,
      install,
      clock: { now: () => Date.now() },
      log,
      metrics,
      retryMs: 20,
    })
    const refusals = () => log.lines.filter((line) => line.includes('the previous one stays active'))
    try {
      await put('proxy.json', routes({ targetTls: { caCertPath: '../later.pem' } }))
      expect(await reloader.reload()).toMatchObject({ ok: false })
      // Many looks later.
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(current.routes[0]?.targetTls).toBeUndefined()
      // Once for the one who asked, and once for the event of the file.
      expect(refusals().length).toBeLessThanOrEqual(2)
      await writeFile(path.join(root, 'later.pem'), 'nothing')
      await vi.waitFor(() => expect(refusals().at(-1)).toContain('it holds no certificate'), 10_000)
      await writeFile(path.join(root, 'later.pem'), TLS.ca)
      await vi.waitFor(() => expect(current.routes[0]?.targetTls).toBeDefined(), 10_000)
      const failures = (await metrics.render()).match(/extauth_config_reloads_total\{outcome="failed"\} (\d+)/)?.[1]
      expect(Number(failures)).toBe(refusals().length)
    } finally {
      reloader.close()
    }
  })
})
