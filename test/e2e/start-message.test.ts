import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { extauth } from './process.ts'

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
