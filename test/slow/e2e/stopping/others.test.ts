import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { extauth } from '../../../support/e2e/process.ts'
import { INITIALIZE, post } from '../../../support/e2e/lab.ts'
import { freePort } from '../../../support/e2e/run.ts'
import { ANY_LAB_PORT } from '../../../support/lab-ports.ts'
import { startWith } from '../../../support/e2e/stopping/held.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const wait = (id: number, ms: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'wait', arguments: { ms } },
})

describe('extauth lab, asked to stop', () => {
  it('gives a running call its second, cleans up after itself, and exits with 0', async () => {
    const lab = await startWith(sockets, {}, ['lab', ...ANY_LAB_PORT])
    await expect.poll(lab.stdout, { timeout: 30_000 }).toContain('Stop with Ctrl-C')
    const address = (name: string): string => new RegExp(`^  ${name} +(\\S+)`, 'm').exec(lab.stdout())?.[1] ?? ''
    const config = address('config')
    expect(existsSync(config)).toBe(true)
    const url = `${address('proxy')}/unauthenticated`
    const session = (await post(url, INITIALIZE)).headers.get('mcp-session-id') ?? ''
    const call = async (ms: number): Promise<unknown> => {
      const response = await post(url, wait(1, ms), { 'mcp-session-id': session })
      return response.text()
    }
    const torn = call(60_000).catch(() => 'torn')
    const whole = call(900)
    await delay(400)
    lab.process.kill('SIGTERM')
    expect(await whole).toContain('"result"')
    expect(await torn).not.toContain('"result"')
    expect(await lab.ended).toBe(0)
    expect(existsSync(config)).toBe(false)
  }, 60_000)
})

describe('a command that has nothing to end', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends with %s at once',
    async (signal) => {
      // A server that accepts connections and stays silent.
      const silent = await sockets.listen(createServer())
      const check = await startWith(sockets, { auth: AUTH }, ['check', ...shortForm(silent)])
      await vi.waitFor(() => expect(check.process.connected).toBe(false))
      await delay(1_500)
      const startedMs = performance.now()
      check.process.kill(signal)
      await check.ended
      expect(performance.now() - startedMs).toBeLessThan(5_000)
      expect(check.process.signalCode).toBe(signal)
    },
    60_000,
  )
})

const AUTH = JSON.stringify({
  apiVersion: 'extauth.dev/v1alpha1',
  kind: 'MCPExternalAuthConfig',
  metadata: { name: 'none' },
  spec: { type: 'unauthenticated' },
})
const shortForm = (host: string): string[] => ['--target', `http://${host}/mcp`, '--external-auth', '{dir}/auth']

describe('standard output that is full', () => {
  const into = (where: string): string[] => ['sh', '-c', `exec "$@" ${where}`, 'sh']

  it('fails a command whose output is closed, without a crash', async () => {
    const running = extauth(['schema', 'ProxyConfig'], { through: into('> /dev/full') })
    expect(await running.ended).toBe(1)
    expect(running.stderr()).toBe('extauth: standard output cannot be written (ENOSPC)\n')
  })

  it('keeps extauth proxy from nothing: it starts, serves, and stops with 0', async () => {
    const [port, admin] = [await freePort(), await freePort()]
    const args = ['--listen', `127.0.0.1:${port}`, '--admin', `127.0.0.1:${admin}`]
    const files = await startWith(sockets, { auth: AUTH }, ['version'])
    const auth = shortForm('127.0.0.1:9').map((arg) => arg.replace('{dir}', files.directory))
    const running = extauth(['proxy', ...auth, ...args], { through: into('> /dev/full 2>&1') })
    sockets.closing({ close: () => running.process.kill('SIGKILL') })
    const health = async (): Promise<number> => (await fetch(`http://127.0.0.1:${admin}/health`)).status
    await vi.waitFor(async () => expect(await health()).toBe(200), { timeout: 30_000, interval: 100 })
    await delay(500)
    expect(await health()).toBe(200)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
  }, 60_000)
})
