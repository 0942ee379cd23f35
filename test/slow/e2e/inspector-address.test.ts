import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { extauth } from '../../support/e2e/process.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'extauth-inspector-'))
afterAll(() => rmSync(directory, { recursive: true }))
const TOKEN_FILE = path.join(directory, 'admin-token')
writeFileSync(TOKEN_FILE, 'a-token-of-32-characters-or-more')

const config = (admin: string): string => `
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: local }
spec:
  auth: { mode: anonymous }
  admin: ${admin}
  routes: [{ name: open, path: /, target: 'http://127.0.0.1:2/mcp', externalAuthConfigRef: { name: nothing } }]
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: nothing }
spec: { type: unauthenticated }
`

/** Status of `/inspect`, asked for on this machine without a token, and whether a browser is shown something. */
const inspectorOf = (admin: string): Promise<{ status: number | undefined; isPage: boolean }> =>
  new Promise((resolve, reject) => {
    const where = admin.startsWith('unix:')
      ? { socketPath: admin.slice('unix:'.length) }
      : { host: '127.0.0.1', port: new URL(admin).port }
    request({ ...where, path: '/inspect' }, (response) => {
      response.resume()
      const isPage = response.headers['content-type']?.startsWith('text/html') === true
      resolve({ status: response.statusCode, isPage })
    })
      .on('error', reject)
      .end()
  })

it.each<[where: string, admin: string, status: number, ...options: string[]]>([
  ['on loopback', "{ address: '127.0.0.1:0', inspector: heads }", 200],
  ['on a Unix socket', `{ address: 'unix:${directory}/admin.sock', inspector: heads }`, 200],
  // The page that asks for the token.
  ['for others, with a token', `{ address: '0.0.0.0:0', inspector: heads, tokenFile: ${TOKEN_FILE} }`, 401],
  ['for others, without a token', "{ address: '0.0.0.0:0', inspector: heads }", 404],
  ['off', "{ address: '127.0.0.1:0' }", 404],
  ['off with workers', "{ address: '127.0.0.1:0', inspector: heads }", 404, '--workers', '2'],
])(
  'extauth proxy says where its inspector is just where there is a page: %s',
  async (_where, admin, status, ...more) => {
    const file = path.join(directory, 'proxy.yaml')
    writeFileSync(file, config(admin))
    const proxy = extauth(['proxy', '--config', file, '--listen', '127.0.0.1:0', ...more])
    // The routes are printed last.
    await expect.poll(proxy.stdout, { timeout: 20_000 }).toContain('http://127.0.0.1:2/mcp')
    const [, address = ''] = /admin listener at (\S+)$/m.exec(proxy.stdout()) ?? []
    const isServed = status !== 404
    expect(/^inspector at (\S+)$/m.exec(proxy.stdout())?.[1]).toBe(isServed ? `${address}/inspect` : undefined)
    expect(await inspectorOf(address)).toEqual({ status, isPage: isServed })
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  },
  30_000,
)
