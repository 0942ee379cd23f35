import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { EXECUTABLE, extauth, type Running } from '../e2e/process.ts'
import { putProgram } from '../made-program.ts'

const root = path.join(import.meta.dirname, '../../..')

/** The program as its package has it, in a folder of its own. */
export interface BuiltProgram {
  readonly folder: string
  /** Runs a command to its end. */
  run(args: readonly string[], input?: string): Promise<{ code: number | null; stdout: string; stderr: string }>
  /** Starts one that serves, by the launcher or another file of `bin` or `dist`. */
  start(args: readonly string[], program?: string): Running
  /** Ends what still runs, and removes the folder. */
  remove(): void
}

/** Builds it: dist/ and what goes with it, without sources and without any package. */
export function buildProgram(): BuiltProgram {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-built-'))
  putProgram(folder)
  for (const name of ['bin', 'config', 'package.json'])
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true })
  const started: Running[] = []
  const start: BuiltProgram['start'] = (args, name = EXECUTABLE === undefined ? 'bin/extauth.cjs' : undefined) => {
    const program = name === undefined ? {} : { program: path.join(folder, name) }
    const running = extauth(args, { cwd: folder, stdin: 'pipe', ...program })
    started.push(running)
    return running
  }
  return {
    folder,
    start,
    async run(args, input = '') {
      const { process: child, stdout, stderr, ended } = start(args)
      child.stdin?.end(input)
      return { code: await ended, stdout: stdout(), stderr: stderr() }
    },
    remove() {
      for (const { process: child } of started) child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
