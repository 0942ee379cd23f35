import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { type LabBackend, startLabBackend } from '../../../lab/index.ts'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { rawConnect } from '../../support/raw.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

const KEY = 'value-of-the-key-header'
let backend: LabBackend
let running: Running | undefined
const folders: (() => Promise<void>)[] = []

beforeAll(async () => {
  backend = await startLabBackend({
    port: 0,
    mounts: { '/tools': { kind: 'header', name: 'X-Api-Key', value: new Secret(KEY) } },
    clock: { now: () => Date.now() },
  })
})
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  for (const remove of folders.splice(0)) await remove()
})
afterAll(() => backend.close())

const route = (name: string) => ({
  name,
  path: `/${name}`,
  target: `${backend.url}/tools/mcp`,
  externalAuthConfigRef: { name: 'key' },
})
const files = (...names: string[]) => ({
  'auth.json': authConfig('key', {
    type: 'headerInjection',
    headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
  }),
  'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes: names.map(route) }),
  'secrets/api/key': KEY,
})

async function folder(content: Record<string, string>) {
  const made = await configFolder(content)
  folders.push(made.remove)
  return made
}
const FREE = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']

describe('extauth proxy as a process', () => {
  it('serves, reloads on SIGHUP, and ends with exit code 0 on SIGTERM', async () => {
    const { directory, write } = await folder(files('one'))
    running = extauth(['proxy', '--config', directory, ...FREE])
    const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
    expect((await post(`${url}/one`, INITIALIZE)).status).toBe(200)
    expect((await post(`${url}/two`, INITIALIZE)).status).toBe(404)
    expect(await (await fetch(`${admin}/readiness`)).json()).toEqual({ status: 'ready' })
    await write('proxy.json', files('one', 'two')['proxy.json'])
    running.process.kill('SIGHUP')
    await running.line('configuration reloaded')
    expect((await post(`${url}/two`, INITIALIZE)).status).toBe(200)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    expect(running.stderr()).not.toContain(KEY)
    expect(running.stderr()).toContain('"msg":"stopped"')
  })

  it.each([
    ['in HTTP/1.1', 'POST /one HTTP/1.1\r\nHost: localhost\r\nContent-'],
    ['of one byte, behind an answer', 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nG'],
    ['that was no plain one', '\r\nPROPFIND http://localhost/one HTTP/1.0\r\nX: a\r\nX: b'],
  ])('is not held by half a request head at SIGTERM: %s', async (_what, text) => {
    const { directory } = await folder(files('one'))
    running = extauth(['proxy', '--config', directory, ...FREE, '--drain-grace', '60s'])
    const { url } = (await running.line('listening')) as { url: string }
    const client = rawConnect(url, text)
    if (text.includes('/health')) await client.until(/\r\n\r\n/)
    // The head has been read as far as it has come.
    expect((await post(`${url}/one`, INITIALIZE)).status).toBe(200)
    const startedMs = performance.now()
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    expect(performance.now() - startedMs).toBeLessThan(20_000)
    expect(running.stderr()).not.toContain('waiting for answers')
  })

  it('keeps the old configuration when the new one is broken, and says what is wrong', async () => {
    const { directory, write } = await folder(files('one'))
    running = extauth(['proxy', '--config', directory, ...FREE])
    const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
    await write('proxy.json', files('one')['proxy.json'].replace('"routes"', '"rutes"'))
    const line = await running.line('new configuration rejected; the previous one stays active')
    expect(JSON.stringify(line['problems'])).toContain('rutes')
    expect((await post(`${url}/one`, INITIALIZE)).status).toBe(200)
    const answer = await fetch(`${admin}/reload`, { method: 'POST' })
    expect(answer.status).toBe(422)
    expect(JSON.stringify(await answer.json())).toContain('routes')
  })

  it('refuses a broken configuration with every problem, its place, and exit code 1', async () => {
    const content = files('one')
    const { directory } = await folder({
      ...content,
      'auth.json': content['auth.json'].replace('"headerName"', '"headerNme"'),
      'proxy.json': content['proxy.json'].replace('"name":"key"', '"name":"kee"'),
    })
    running = extauth(['proxy', '--config', directory, ...FREE])
    expect(await running.ended).toBe(1)
    expect(running.stderr()).toMatch(/auth\.json:1:\d+ .*MCPExternalAuthConfig\/key .*headerNme.*headerName/)
    expect(running.stderr()).toMatch(/proxy\.json:1:\d+ .*ProxyConfig\/test .*kee/)
    expect(running.stderr()).toContain('nothing was started')
  })

  it('says that an address is in use, and exits with 1', async () => {
    const blocker = createServer()
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve))
    const { port } = blocker.address() as AddressInfo
    const { directory } = await folder(files('one'))
    for (const taken of [
      ['--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0'],
      ['--listen', '127.0.0.1:0', '--admin', `127.0.0.1:${port}`],
    ]) {
      running = extauth(['proxy', '--config', directory, ...taken])
      expect(await running.ended).toBe(1)
      expect(running.stderr()).toContain(`127.0.0.1:${port}`)
      expect(running.stderr()).toContain('in use')
    }
    await new Promise((resolve) => blocker.close(resolve))
  })

  it('takes options from the environment and the short form', async () => {
    const { directory } = await folder(files('one'))
    running = extauth(['proxy', '--target', `${backend.url}/tools/mcp`], {
      env: {
        EXTAUTH_EXTERNAL_AUTH: `${path.join(directory, 'auth.json')}#key`,
        EXTAUTH_SECRETS_DIR: path.join(directory, 'secrets'),
        EXTAUTH_LISTEN: '127.0.0.1:0',
        EXTAUTH_ADMIN: '127.0.0.1:0',
      },
    })
    const { url } = (await running.line('listening')) as { url: string }
    expect((await post(url, INITIALIZE)).status).toBe(200)
    running.process.kill('SIGINT')
    expect(await running.ended).toBe(0)
  })

  it('runs manifests as they are applied to a cluster', async () => {
    const { directory } = await folder({
      'all.yaml': [
        'apiVersion: toolhive.stacklok.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata: {name: key}',
        'spec:\n  type: headerInjection\n  headerInjection: {headerName: X-Api-Key, valueSecretRef: {name: api, key: key}}',
        '---\napiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPRemoteProxy\nmetadata: {name: tools}',
        `spec:\n  remoteUrl: ${backend.url}/tools/mcp\n  externalAuthConfigRef: {name: key}`,
        '---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\nspec: {}\n',
      ].join('\n'),
      'secrets/api/key': KEY,
    })
    running = extauth(['proxy', '--config', directory, '--secrets-dir', path.join(directory, 'secrets'), ...FREE])
    const { url } = (await running.line('listening')) as { url: string }
    expect((await post(url, INITIALIZE)).status).toBe(200)
  })
})
