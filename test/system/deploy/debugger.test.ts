import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type BuiltProgram, buildProgram } from '../../support/deploy/built-program.ts'

let program: BuiltProgram
let file: string
beforeAll(() => {
  // Each debugger would get a port of its own, whatever else runs here.
  vi.stubEnv('NODE_OPTIONS', '--inspect-port=0')
  program = buildProgram()
  mkdirSync(path.join(program.folder, 'own'))
  file = path.join(program.folder, 'own/proxy.yaml')
  writeFileSync(
    file,
    `
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: none }
spec: { type: unauthenticated }
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: here }
spec:
  listen: { address: "127.0.0.1:0" }
  auth: { mode: anonymous }
  routes: [{ name: r, path: /r, target: "http://127.0.0.1:1/mcp", externalAuthConfigRef: { name: none } }]
`,
  )
}, 60_000)
afterAll(() => {
  vi.unstubAllEnvs()
  program.remove()
})

/** Ports on which a process listens. */
function portsOf(pid: number): string[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    }),
  )
  return readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === '0A' && inodes.has(inode ?? ''))
    .map(([, local = '']) => local)
}

const childrenOf = (pid: number): number[] =>
  execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(Number)

/** Node opens its debugger within milliseconds of the signal. */
async function signaled(pid: number): Promise<{ before: string[]; after: string[] }> {
  const before = portsOf(pid)
  process.kill(pid, 'SIGUSR1')
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  return { before, after: portsOf(pid) }
}

const serving = () => ['proxy', '--config', file, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']

describe('SIGUSR1 opens no debugger', () => {
  it('in a proxy and its workers', async () => {
    const proxy = program.start([...serving(), '--workers', '2'])
    await proxy.shows('proxy at ')
    const { pid = 0 } = proxy.process
    const workers = childrenOf(pid)
    expect(workers).toHaveLength(2)
    for (const each of [pid, ...workers]) {
      const { before, after } = await signaled(each)
      expect(after).toEqual(before)
    }
    for (const each of workers)
      expect(readFileSync(`/proc/${each}/cmdline`, 'latin1').split('\0')).toContain('--disable-sigusr1')
    const url = /proxy at (\S+),/.exec(proxy.printed())?.[1] ?? ''
    expect((await fetch(`${url}/r`)).status).toBe(502)
    expect(proxy.printed()).not.toContain('Debugger')
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  }, 60_000)

  it('in the bridge of stdio', async () => {
    const stdio = program.start(['stdio', '--url', 'http://127.0.0.1:1/mcp'])
    stdio.process.stdin?.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    await stdio.shows('"id":1')
    const { before, after } = await signaled(stdio.process.pid ?? 0)
    expect(after).toEqual(before)
    expect(stdio.printed()).not.toContain('Debugger')
    stdio.process.stdin?.end()
    await stdio.ended
  }, 60_000)

  it('where what was built is started without the launcher', async () => {
    const proxy = program.start(serving(), 'dist/main.cjs')
    await proxy.shows('proxy at ')
    const { before, after } = await signaled(proxy.process.pid ?? 0)
    expect(after).toEqual(before)
    expect(proxy.printed()).not.toContain('Debugger')
    proxy.process.kill('SIGTERM')
    await proxy.ended
  }, 60_000)

  it('in images, from the first moment on', () => {
    const dockerfile = readFileSync(path.join(import.meta.dirname, '../../../Dockerfile'), 'utf8')
    expect(/^ENTRYPOINT (.*)$/m.exec(dockerfile)?.[1]).toContain('"--disable-sigusr1"')
  })
})
