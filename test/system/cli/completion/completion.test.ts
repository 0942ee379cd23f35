import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { specsOf } from '../../../../src/cli/command.ts'
import { COMMANDS, main } from '../../../../src/cli/commands/index.ts'
import { shellQuote } from '../../../../src/cli/shell-quote.ts'
import { ioOf } from '../../../support/compose/io.ts'

let directory: string
let script: string

beforeAll(async () => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'extauth completion '))
  mkdirSync(path.join(directory, 'manifests'))
  writeFileSync(path.join(directory, 'my proxy.yaml'), '')
  const { io, out } = ioOf()
  expect(await main(['completion', 'bash'], io)).toBe(0)
  script = out.stdout
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Completions of a real bash for the last word; words are as bash splits them. */
function offered(...words: string[]): string[] {
  const quoted = words.map(shellQuote).join(' ')
  const ask = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _extauth; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', `${script}\n${ask}`], {
    cwd: directory,
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([0, ''])
  return stdout.split('\n').filter((line) => line !== '')
}

describe('extauth completion bash', () => {
  it('offers every command', () => {
    expect(offered('extauth', '')).toEqual([...Object.keys(COMMANDS), '--help', '--version'])
    expect(offered('extauth', 'va')).toEqual(['validate'])
  })

  it('offers every option of every command, and of its own commands', async () => {
    const specs = (await Promise.all(Object.values(COMMANDS).map(specsOf))).flat()
    expect(specs.length).toBeGreaterThan(9)
    for (const { name, options } of specs) {
      const flags = Object.keys(options).map((option) => `--${option}`)
      expect(offered(...name.split(' '), '--')).toEqual([...flags, '--help'])
    }
  }, 30_000)

  it.each([
    [['extauth', 'lab', 't'], ['token']],
    [
      ['extauth', 'lab', 'token', '--alg', ''],
      ['RS256', 'ES256'],
    ],
    [['extauth', 'proxy', '--log-format', 'h'], ['human']],
    [
      ['extauth', 'proxy', '--log-format', '='],
      ['human', 'json'],
    ],
    [['extauth', 'proxy', '--log-format', '=', 'j'], ['json']],
    [['extauth', 'proxy', '--config', 'my'], ['my proxy.yaml']],
    [['extauth', 'proxy', '--secrets-dir', 'm'], ['manifests']],
    [['extauth', 'proxy', '--namespace', ''], []],
    [['extauth', 'schema', 'Reg'], ['RegistryConfig']],
    [
      ['extauth', 'validate', 'm'],
      ['my proxy.yaml', 'manifests'],
    ],
    [['extauth', 'nothing', ''], []],
  ])('of %j offers %j', (words, expected) => {
    expect(offered(...words).toSorted()).toEqual([...expected].toSorted())
  })

  it('registers itself for extauth', () => {
    const { stdout } = spawnSync('bash', ['--norc', '-c', `${script}\ncomplete -p extauth`], { encoding: 'utf8' })
    expect(stdout).toBe('complete -F _extauth extauth\n')
  })
})

describe('extauth completion', () => {
  it.each(['zsh', 'fish'])('has every command and option for %s', async (shell) => {
    const { io, out } = ioOf()
    expect(await main(['completion', shell], io)).toBe(0)
    for (const [command, entry] of Object.entries(COMMANDS)) {
      expect(out.stdout).toContain(command)
      for (const { options } of await specsOf(entry))
        for (const option of Object.keys(options))
          expect(out.stdout).toMatch(shell === 'fish' ? new RegExp(` -l ${option} `) : new RegExp(`--${option}[=[]`))
    }
  })

  it.each([[[]], [['tcsh']], [['constructor']], [['bash', 'zsh']]])('%j is a usage error', async (argv) => {
    const { io, out } = ioOf()
    expect(await main(['completion', ...argv], io)).toBe(2)
    expect(out.stdout).toBe('')
    expect(out.stderr).toContain('expected one of bash, zsh, fish')
  })
})
