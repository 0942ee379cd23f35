import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { isThere } from '../../support/processes.ts'
import { chosenOf, runPeers, type Peer } from '../../../interop/peers.ts'

const peer = (name: string, more: Partial<Peer>): Peer => ({
  name,
  missing: () => undefined,
  run: () => Promise.resolve(true),
  ...more,
})
const agreeing = peer('agreeing', {})
const disagreeing = peer('disagreeing', { run: () => Promise.resolve(false) })
const broken = peer('broken', { run: () => Promise.reject(new Error('pip did not work')) })
const absent = peer('absent', {
  missing: () => Promise.resolve('there is no java'),
  run: () => Promise.reject(new Error('must not run')),
})

async function verdict(...peers: Peer[]) {
  const lines: string[] = []
  return { code: await runPeers(peers, (line) => void lines.push(line)), lines }
}

describe('the peers', () => {
  it('are chosen by a part of their names', () => {
    const all = [agreeing, disagreeing, broken, absent]
    expect(chosenOf(all, '')).toEqual(all)
    expect(chosenOf(all, 'AGREE')).toEqual([agreeing, disagreeing])
    expect(chosenOf(all, 'broken, abs')).toEqual([broken, absent])
    expect(chosenOf(all, 'another')).toEqual([])
  })

  it('pass when all agree', async () => {
    const { code, lines } = await verdict(agreeing)
    expect([code, lines.at(-1)]).toEqual([0, "agree: agreeing; failed: none; can't be had: none"])
  })

  it('pass without one that can’t be had, and say which and why', async () => {
    const { code, lines } = await verdict(agreeing, absent)
    expect(code).toBe(0)
    expect(lines).toContain("absent did not run: it can't be had here (there is no java)")
    expect(lines.at(-1)).toBe("agree: agreeing; failed: none; can't be had: absent")
  })

  it('fail when one that could be had did not run, and run the others all the same', async () => {
    const { code, lines } = await verdict(broken, agreeing)
    expect(code).toBe(1)
    expect(lines).toContain('broken FAILED: it could be had and did not run: pip did not work')
    expect(lines.at(-1)).toBe("agree: agreeing; failed: broken; can't be had: none")
  })

  it('fail when one disagrees', async () => {
    expect(await verdict(disagreeing, agreeing)).toMatchObject({ code: 1 })
  })
})

const SDKS = ['MCP SDK for Python', 'MCP SDK for Go', 'MCP SDK for Java']
const NEED_TOOLS = ['botocore', 'moto', 'MiniStack', 'zsh', 'fish', 'Keycloak', ...SDKS]
const PEERS = path.join(import.meta.dirname, '../../../interop/main.ts')
/** Java as far as it is asked, and whatever is asked for nothing. */
const JAVA = `#!/bin/sh
echo 'openjdk version "17.0.15" 2025-04-15' >&2
`
/** An installer that never ends and prints its process id. */
const ENDLESS_MAVEN = `#!/bin/sh
case "$*" in *:copy*) echo $$ >"$MAVEN_IS"; exec "$FOR_EVER" -e "setInterval(() => {}, 1000)" ;; esac
`

describe('npm run peers', () => {
  // The others use the build of the first one.
  const compiled = mkdtempSync(path.join(os.tmpdir(), 'extauth-compiled-'))
  afterAll(() => rmSync(compiled, { recursive: true, force: true }))

  // Programs from npm run where they are installed.
  it('reports each unavailable program on an empty machine, and passes', () => {
    const bin = mkdtempSync(path.join(os.tmpdir(), 'extauth-no-tools-'))
    try {
      symlinkSync(process.execPath, path.join(bin, 'node'))
      const { status, stdout } = spawnSync(process.execPath, [PEERS], {
        env: { PATH: bin, NODE_COMPILE_CACHE: compiled },
        encoding: 'utf8',
      })
      expect(status).toBe(0)
      for (const name of NEED_TOOLS)
        expect(stdout).toMatch(new RegExp(`^peers: ${name} did not run: it can't be had here \\(.+\\)$`, 'm'))
    } finally {
      rmSync(bin, { recursive: true, force: true })
    }
  }, 90_000)

  it.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
    'leaves nothing behind that it started, ended by %s',
    async (how) => {
      const bin = mkdtempSync(path.join(os.tmpdir(), 'extauth-endless-'))
      const file = path.join(bin, 'pid')
      const maven = (): number => (existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0)
      try {
        for (const name of ['java', 'unzip', 'openssl']) writeFileSync(path.join(bin, name), JAVA, { mode: 0o755 })
        writeFileSync(path.join(bin, 'mvn'), ENDLESS_MAVEN, { mode: 0o755 })
        const env = { PATH: bin, TMPDIR: bin, MAVEN_IS: file, FOR_EVER: process.execPath, NODE_COMPILE_CACHE: compiled }
        const run = spawn(process.execPath, [PEERS, '--only', 'Keycloak'], { env, stdio: 'ignore' })
        await expect.poll(maven, { timeout: 60_000 }).toBeGreaterThan(0)
        const scratch = (): readonly string[] => readdirSync(bin).filter((name) => name.startsWith('peers-'))
        expect([isThere(maven()), scratch()]).toEqual([true, [expect.any(String)]])
        run.kill(how)
        await expect.poll(() => [isThere(maven()), scratch()], { timeout: 60_000 }).toEqual([false, []])
      } finally {
        rmSync(bin, { recursive: true, force: true })
      }
    },
    150_000,
  )
})
