import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const BIN = path.join(import.meta.dirname, '../../bin')
const directory = mkdtempSync(path.join(tmpdir(), 'extauth-old-node-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** Preloaded, it makes a Node say that it is an old one; one that it starts is what it is. */
const OLD = path.join(directory, 'old.cjs')
writeFileSync(OLD, "Object.defineProperty(process.versions, 'node', { value: '18.19.0' })\n")
/** … and that it brought no other along. */
const ALONE = path.join(directory, 'alone.cjs')
writeFileSync(ALONE, `require(${JSON.stringify(OLD)})\nObject.defineProperty(process, 'arch', { value: 'sparc' })\n`)

function start(preload: string, script: string, ...args: string[]) {
  const child = spawn(process.execPath, ['--require', preload, path.join(BIN, script), ...args])
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => void (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (output.stderr += chunk.toString()))
  return { child, output, ended: once(child, 'close') as Promise<[number | null, string | null]> }
}

describe('on a Node that is too old', () => {
  it('extauth runs with the Node that its package brought', async () => {
    const { output, ended } = start(OLD, 'extauth.cjs', 'version')
    expect(await ended).toEqual([0, null])
    expect(output.stdout).toMatch(/^mcp-extauth \S+ \(Node 24\./)
  })

  it('its exit codes and signals are those of the other one', async () => {
    expect(await start(OLD, 'extauth.cjs', 'nothing').ended).toEqual([2, null])
    const ports = ['port', 'admin-port', 'idp-port', 'idp-tls-port', 'backend-port', 'sts-port']
    const { child, output, ended } = start(OLD, 'extauth.cjs', 'lab', ...ports.flatMap((name) => [`--${name}`, '0']))
    await expect.poll(() => output.stdout, { timeout: 15_000 }).toContain('Stop with Ctrl-C')
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  })

  it('that brought none says what is needed', async () => {
    const { output, ended } = start(ALONE, 'extauth.cjs', 'version')
    expect(await ended).toEqual([2, null])
    expect(output.stderr).toMatch(/needs Node 24\.12 or newer/)
  })

  it('a script of the checkout says how to start it', async () => {
    const { output, ended } = start(OLD, 'require-node.cjs')
    expect(await ended).toEqual([2, null])
    expect(output.stderr).toContain('npm start')
  })
})
