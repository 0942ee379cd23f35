import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { extauth } from '../../support/e2e/process.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'extauth-start-'))
afterAll(() => rmSync(directory, { recursive: true }))

const CONFIG = `
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: local }
spec:
  auth:
    mode: oauth
    oauth:
      resourceUrl: http://127.0.0.1:8080/
      providers: [{ name: idp, issuerUrl: 'http://127.0.0.1:1', audience: us }]
  routes:
    - name: open
      path: /open
      target: http://127.0.0.1:2/mcp?key=not-for-the-screen
      externalAuthConfigRef: { name: nothing }
      auth: { mode: anonymous }
    - name: closed
      path: /closed
      target: http://127.0.0.1:2/a/longer/path
      externalAuthConfigRef: { name: nothing }
      resourceUrl: http://127.0.0.1:8080/closed
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: nothing }
spec: { type: unauthenticated }
`

it('extauth proxy says where it listens and what its routes are', async () => {
  const file = path.join(directory, 'proxy.yaml')
  writeFileSync(file, CONFIG)
  const proxy = extauth(['proxy', '--config', file, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
  const { url, admin } = (await proxy.line('listening')) as { url: string; admin: string }
  await expect
    .poll(proxy.stdout)
    .toBe(
      [
        `proxy at ${url}, admin listener at ${admin}`,
        `  ${url}/open    http://127.0.0.1:2/mcp            unauthenticated  anonymous callers`,
        `  ${url}/closed  http://127.0.0.1:2/a/longer/path  unauthenticated  callers with a token`,
        '',
      ].join('\n'),
    )
  proxy.process.kill('SIGTERM')
  expect(await proxy.ended).toBe(0)
}, 30_000)

it('extauth proxy in the short form says where its inspector is, which has a page', async () => {
  const file = path.join(directory, 'auth.yaml')
  writeFileSync(file, CONFIG.slice(CONFIG.indexOf('---') + 4))
  const args = ['--target', 'http://127.0.0.1:2/mcp', '--external-auth', file]
  const proxy = extauth(['proxy', ...args, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
  await proxy.line('listening')
  await expect.poll(proxy.stdout).toContain('inspector at ')
  const [, url = ''] = /^inspector at (http:\S+\/inspect)$/m.exec(proxy.stdout()) ?? []
  const page = await fetch(url)
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('<title>extauth inspector</title>')
  proxy.process.kill('SIGTERM')
  expect(await proxy.ended).toBe(0)
}, 30_000)
