import { describe, expect, it } from 'vitest'
import type { Io } from '../../../src/compose/index.ts'
import { specsOf } from '../../../src/cli/command.ts'
import { COMMANDS, main } from '../../../src/cli/commands/index.ts'

const NAMES = Object.keys(COMMANDS)
/** Those of a command too. */
const SPECS = (await Promise.all(Object.values(COMMANDS).map(specsOf))).flat()

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const io: Io = {
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    env: {},
    stdin: () => Promise.resolve(''),
    stop: Promise.resolve('SIGTERM'),
    onReload: () => undefined,
  }
  return { code: await main(argv, io), out, err }
}

describe('extauth', () => {
  it('lists its commands, on request with exit code 0, without a command with 2', async () => {
    const asked = await run('--help')
    const bare = await run()
    expect(asked.code).toBe(0)
    expect(bare).toEqual({ code: 2, out: '', err: asked.out })
    for (const command of NAMES) expect(asked.out).toContain(`\n  ${command} `)
  })

  it.each(NAMES)('%s --help names the command and exits 0', async (command) => {
    const { code, out, err } = await run(command, '--help')
    expect(err).toBe('')
    expect(code).toBe(0)
    expect(out).toContain(`Usage: extauth ${command}`)
  })

  it.each(SPECS.map((spec) => [spec.name.replace('extauth ', ''), spec] as const))(
    '%s --help says what its exit codes mean',
    (_name, spec) => {
      expect(spec.notes).toMatch(/^Exit codes?: 0/m)
    },
  )

  it.each(NAMES)('%s refuses an unknown option with exit code 2', async (command) => {
    const { code, out, err } = await run(command, '--no-such-option')
    expect(code).toBe(2)
    expect(out).toBe('')
    expect(err).toContain('--no-such-option')
    expect(err).toContain(`extauth ${command} --help`)
  })

  it.each(['version', '--version'])('%s prints one line', async (word) => {
    const { code, out } = await run(word)
    expect(code).toBe(0)
    expect(out).toMatch(/^mcp-extauth \d+\.\d+\.\d+ \(Node 24\.\d+\.\d+\)\n$/)
  })

  it('version prints JSON for programs', async () => {
    const { code, out } = await run('version', '--output', 'json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toEqual({
      name: 'mcp-extauth',
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      node: process.versions.node,
    })
    expect((await run('version', '--output', 'yaml')).code).toBe(2)
  })

  it('names the command that was meant', async () => {
    expect((await run('prxy')).err).toBe('extauth: unknown command "prxy". Did you mean proxy? See extauth --help.\n')
    expect((await run('-x')).err).not.toContain('Did you mean')
  })

  it('names the argument that a command does not take, and the command once', async () => {
    expect((await run('proxy', 'a.yaml')).err).toBe(
      'extauth proxy: takes no argument "a.yaml". See extauth proxy --help.\n',
    )
    expect((await run('proxy')).err).toMatch(/^extauth proxy: needs --config PATH/)
  })

  it.each(['constructor', 'prxy', '-x'])('refuses the unknown command %s with exit code 2', async (word) => {
    expect(await run(word)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('extauth --help') as string,
    })
  })
})
