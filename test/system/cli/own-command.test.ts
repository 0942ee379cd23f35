import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { ownCommand, printedPath } from '../../../src/cli/own-command.ts'
import { shellQuote } from '../../../src/cli/shell-quote.ts'

const ROOT = path.join(import.meta.dirname, '../../..')

describe('a word of a printed command', () => {
  it.each([
    'plain/path-1.yaml',
    'with space',
    "it's",
    '"double"',
    '$HOME and `id`',
    '*',
    'a;b&c|d<e>f(g)',
    '~user',
    '!history',
    '\\back',
    'two\nlines',
    '-option',
    '#comment',
    '',
    'ä',
    '{a,b}',
  ])('%j is the same to a shell', (text) => {
    for (const shell of ['bash', 'sh']) {
      const { stdout } = spawnSync(shell, ['-c', `printf %s ${shellQuote(text)}`], { encoding: 'utf8', cwd: ROOT })
      expect(stdout).toBe(text)
    }
  })

  it('is not quoted where it need not be', () => {
    expect(shellQuote('config/lab/show-request.curl')).toBe('config/lab/show-request.curl')
  })
})

describe('a path in a printed command', () => {
  it.each([
    ['/home/me/config/proxy.yaml', '/home/me', 'config/proxy.yaml'],
    ['/home/me/my config/proxy.yaml', '/home/me', "'my config/proxy.yaml'"],
    ['/opt/extauth/config', '/home/me', '/opt/extauth/config'],
    ["/opt/it's/config", '/home/me', String.raw`'/opt/it'\''s/config'`],
    ['/home/me', '/home/me', '.'],
  ])('%s from %s is %s', (file, directory, printed) => {
    expect(printedPath(file, directory)).toBe(printed)
  })
})

describe('what starts this program', () => {
  it('is npm in a checkout, and from elsewhere the file itself', () => {
    expect(ownCommand(ROOT)).toBe('npm run -s extauth --')
    expect(ownCommand('/tmp')).toBe(`node ${shellQuote(path.join(ROOT, 'bin/extauth.cjs'))}`)
    const { stdout } = spawnSync('bash', ['-c', `${ownCommand('/tmp')} version`], { cwd: '/tmp', encoding: 'utf8' })
    expect(stdout).toMatch(/^mcp-extauth /)
  })
})
