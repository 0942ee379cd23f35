import { NO_AUDIT } from '../../../../src/core/index.ts'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { loadProxyConfig } from '../../../../src/compose/load-config.ts'
import { createReloader } from '../../../../src/compose/proxy/reload.ts'
import { openMetrics } from '../../../../src/report/metrics.ts'
import { recordLog } from '../../../support/e2e/lab.ts'
import { authConfig, proxyConfig } from '../../../support/e2e/run.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'flat-directory-'))
})
afterEach(() => rm(folder, { recursive: true }))
const put = async (name: string, text: string): Promise<void> => {
  await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
  await writeFile(path.join(folder, name), text)
}
const config = (target: string): string =>
  proxyConfig({
    auth: { mode: 'anonymous' },
    routes: [{ name: 'r', path: '/', target, externalAuthConfigRef: { name: 'open' } }],
  })

it('a directory is watched as it is read: files below it, and others in it, cause no reload', async () => {
  await put('auth.json', authConfig('open', { type: 'unauthenticated' }))
  await put('proxy.json', config('https://127.0.0.1:1'))
  await put('secrets/api/key', 'one')
  const sources = { configPaths: [folder] }
  const current = await loadProxyConfig(sources)
  const metrics = openMetrics()
  const install = vi.fn<() => Promise<void>>(() => Promise.resolve())
  const reloader = createReloader({
    audit: NO_AUDIT,
    sources,
    current: () => current,
    install,
    clock: { now: () => Date.now() },
    log: recordLog(),
    metrics,
  })
  try {
    // Past the time in which an event may be of what the first look saw.
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const before = install.mock.calls.length
    await put('secrets/api/key', 'two')
    await put('secrets/more/deep/key.yaml', 'three')
    await put('notes.txt', 'four')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(install).toHaveBeenCalledTimes(before)
    await put('proxy.json', config('https://127.0.0.1:2'))
    await vi.waitFor(() => expect(install).toHaveBeenCalledTimes(before + 1), 10_000)
  } finally {
    reloader.close()
  }
})
