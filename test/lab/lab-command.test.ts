import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const ROOT = path.join(import.meta.dirname, '../..')
const BIN = path.join(ROOT, 'bin/extauth.cjs')
const PORTS = ['port', 'admin-port', 'idp-port', 'idp-tls-port', 'backend-port', 'sts-port', 'workspace-port']
const ANY_PORT = PORTS.flatMap((name) => [`--${name}`, '0'])

function start(argv: readonly string[]) {
  const child = spawn(process.execPath, [BIN, 'lab', ...argv], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => void (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (output.stderr += chunk.toString()))
  return { child, output, ended: once(child, 'close') as Promise<[number | null]> }
}

describe('extauth lab', () => {
  let lab: ReturnType<typeof start>

  beforeAll(async () => {
    lab = start(ANY_PORT)
    await untilPrinted(lab.child, () => lab.output.stdout.includes('Stop with Ctrl-C'))
  })
  afterAll(() => void lab.child.kill('SIGKILL'))

  test('says that it is a stand-in, and where everything is', () => {
    expect(lab.output.stdout).toContain('stand-in for trying things out')
    expect(lab.output.stdout.match(/https?:\/\/127\.0\.0\.1:\d+$/gm)).toHaveLength(7)
    expect(lab.output.stderr).toBe('')
  })

  test('each command that it prints works as it stands', async () => {
    const commands = lab.output.stdout.split('\n').filter((line) => line.startsWith('    curl '))
    expect(commands).toHaveLength(9)
    for (const command of commands) {
      const { stdout } = await promisify(execFile)('bash', ['-c', command], { cwd: ROOT })
      expect(stdout).toMatch(/^POST \/\S+\n(?:[\w-]+: .*\n)+\n[^]*The server (?:asks for no credential|has verified:)/i)
    }
  }, 60_000)

  test('SIGTERM ends it with exit code 0', async () => {
    lab.child.kill('SIGTERM')
    expect((await lab.ended)[0]).toBe(0)
    expect(lab.output.stderr).toBe('')
  })
})

describe('extauth lab that cannot start', () => {
  test.each([
    ['--port', 'proxy'],
    ['--admin-port', 'admin'],
    ['--idp-port', 'identity provider'],
    ['--idp-tls-port', 'identity provider on TLS'],
    ['--backend-port', 'MCP server'],
    ['--sts-port', 'STS'],
    ['--workspace-port', 'workspace'],
  ])('a busy port is named with the option that moves it: %s', async (option) => {
    const taken = createServer()
    taken.listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const { output, ended } = start([...ANY_PORT, option, String(port)])
    expect((await ended)[0]).toBe(1)
    expect(output.stderr).toBe(
      `extauth lab: port ${port} is in use. Choose another one with ${option} PORT, or any free one with ${option} 0.\n`,
    )
    taken.close()
  })

  test('a port that is none is a usage error', async () => {
    const { output, ended } = start(['--port', 'http'])
    expect((await ended)[0]).toBe(2)
    expect(output.stderr).toContain('--port must be a port number')
  })
})

async function untilPrinted(child: ChildProcess, done: () => boolean): Promise<void> {
  while (!done()) {
    if (child.exitCode !== null) throw new Error('the lab ended early')
    await Promise.race([once(child, 'close'), child.stdout === null ? undefined : once(child.stdout, 'data')])
  }
}
