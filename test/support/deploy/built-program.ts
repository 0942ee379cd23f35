import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { putProgram } from '../made-program.ts'

const root = path.join(import.meta.dirname, '../../..')

/** The program as its package has it, in a folder of its own. */
export interface BuiltProgram {
  readonly folder: string
  /** Runs a command to its end. */
  run(args: readonly string[], input?: string): Promise<{ code: number | null; stdout: string; stderr: string }>
  /** Starts one that serves. */
  start(args: readonly string[]): ChildProcess & { printed(): string; ended: Promise<number | null> }
  /** Ends what still runs, and removes the folder. */
  remove(): void
}

/** Builds it: dist/ and what goes with it, without sources, and with the packages that it depends on and no others. */
export function buildProgram(): BuiltProgram {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-built-'))
  putProgram(folder)
  for (const name of ['bin', 'config', 'package.json'])
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true })
  const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean }>
  }
  for (const [name, { dev, devOptional, optional }] of Object.entries(lock.packages)) {
    if (!/^node_modules\/(@[^/]+\/)?[^/]+$/.test(name) || dev || devOptional || optional) continue
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    symlinkSync(path.join(root, name), path.join(folder, name))
  }
  const started: ChildProcess[] = []
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(EXTAUTH_|AWS_|KUBE)/.test(name)))
  const start: BuiltProgram['start'] = (args) => {
    const child = spawn(process.execPath, [path.join(folder, 'bin/extauth.cjs'), ...args], { cwd: folder, env })
    started.push(child)
    let printed = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    return Object.assign(child, { printed: () => printed, ended })
  }
  return {
    folder,
    start,
    async run(args, input = '') {
      const child = start(args)
      const out = { stdout: '', stderr: '' }
      child.stdout?.on('data', (chunk: Buffer) => (out.stdout += chunk.toString()))
      child.stderr?.on('data', (chunk: Buffer) => (out.stderr += chunk.toString()))
      child.stdin?.end(input)
      return { code: await child.ended, ...out }
    },
    remove() {
      for (const child of started) child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
