import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import path from 'node:path'
import ts from 'typescript-api'
import type { Mutation, Verdict } from './mutation.ts'

/** A test that hangs because of a mutation has noticed it. */
const DEADLINE_MS = 240_000

/** A copy of the tree, what is not committed included, in which mutations are planted one after the other. */
export interface Copy {
  /** Runs tests as they are; the end of their output when one fails, else undefined. */
  test(tests: readonly string[]): Promise<string | undefined>
  /** Plants, tests and takes back. */
  judge(mutation: Mutation): Promise<Verdict>
  close(): void
}

/** Copies what git knows or would add. */
export function copyTree(root: string): Copy {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-mutants-'))
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const name of listed.toString('utf8').split('\0').filter(Boolean)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    cpSync(path.join(root, name), path.join(directory, name))
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(directory, 'node_modules'))
  const test = (tests: readonly string[]): Promise<string | undefined> => runTests(directory, tests)
  return {
    test,
    async judge(mutation) {
      const file = path.join(directory, mutation.file)
      const original = readFileSync(file, 'utf8')
      writeFileSync(file, mutate(mutation, original))
      try {
        return (await test(mutation.tests)) === undefined ? 'survived' : 'killed'
      } finally {
        writeFileSync(file, original)
      }
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  }
}

const mutate = ({ find, replace }: Mutation, text: string): string => text.replace(find, () => replace)

/** Why what a mutation that fits makes is no program: a test that fails for that has noticed nothing. */
export function unparsed(root: string, mutation: Mutation): string | undefined {
  const text = mutate(mutation, readFileSync(path.join(root, mutation.file), 'utf8'))
  const { diagnostics = [] } = ts.transpileModule(text, { reportDiagnostics: true })
  return diagnostics.length > 0 ? 'what it makes does not parse' : undefined
}

function runTests(directory: string, tests: readonly string[]): Promise<string | undefined> {
  const vitest = path.join(directory, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', '--bail=1', '--reporter=dot', ...tests], {
    cwd: directory,
    env: { ...process.env, CI: 'true', NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that workers that hang end with it.
    detached: true,
  })
  let output = ''
  const collect = (chunk: Buffer): void => void (output = (output + chunk.toString()).slice(-4000))
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  const timer = setTimeout(() => {
    output += '\nover the deadline'
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }, DEADLINE_MS)
  return new Promise((resolve) => {
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve(code === 0 ? undefined : output)
    })
  })
}
