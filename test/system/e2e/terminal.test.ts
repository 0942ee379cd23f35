import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { extauth } from '../../support/e2e/process.ts'
import { shellQuote } from '../../../src/cli/shell-quote.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const BIN = path.join(ROOT, 'bin/extauth.cjs')
const ANY = ['--address', '127.0.0.1:0', '--internal-address', '127.0.0.1:0']
const REGISTRY = ['registry', '--config', path.join(ROOT, 'config/registry.yaml'), ...ANY]

const started: { kill(): void }[] = []
afterEach(() => {
  for (const one of started.splice(0)) one.kill()
})

/** Output of a command on a terminal until `done`, by `script` of util-linux. */
async function onTerminal(argv: readonly string[], env: Record<string, string>, done: RegExp): Promise<string> {
  const command = `exec ${[process.execPath, BIN, ...argv].map(shellQuote).join(' ')}`
  const { NO_COLOR: _none, ...own } = process.env
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...own, TERM: 'xterm', ...env },
  })
  const group = child.pid ?? 0
  started.push({ kill: () => process.kill(-group, 'SIGTERM') })
  let shown = ''
  child.stdout.on('data', (chunk: Buffer) => void (shown += chunk.toString()))
  while (!done.test(shown)) {
    if (child.exitCode !== null) throw new Error(`ended early: ${shown}`)
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  }
  return shown
}

describe('logs on a terminal', () => {
  it('are lines for people, in colors', async () => {
    const shown = await onTerminal(REGISTRY, {}, /listening/)
    expect(shown).toMatch(/\d\d:\d\d:\d\d\.\d{3}\S* \S*INFO \S* listening .*url=http:\/\/127\.0\.0\.1:\d+/)
    expect(shown).toContain('\x1b[36mINFO')
    expect(shown).not.toContain('"level":30')
  })

  it('have no colors with NO_COLOR', async () => {
    const shown = await onTerminal(REGISTRY, { NO_COLOR: '1' }, /listening/)
    expect(shown).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}listening /m)
    expect(shown).not.toContain('\x1b[')
  })

  it('are JSON where that is asked for', async () => {
    const shown = await onTerminal(REGISTRY, { EXTAUTH_LOG_FORMAT: 'json' }, /listening/)
    expect(shown).toMatch(/\{"level":30,"time":\d+,.*"msg":"listening"\}/)
  })
})

describe('logs elsewhere', () => {
  const start = (argv: readonly string[]) => {
    const running = extauth(argv)
    started.push({ kill: () => void running.process.kill('SIGTERM') })
    return running.shows('listening').then(() => running.stderr())
  }

  it('are JSON, or lines without colors where people are asked for', async () => {
    const [json, human] = await Promise.all([start(REGISTRY), start([...REGISTRY, '--log-format', 'human'])])
    expect(JSON.parse(json.split('\n')[0] ?? '')).toMatchObject({ level: 30 })
    expect(human).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}\S/)
    expect(human).not.toContain('\x1b[')
  })
})
