import type { Io } from '../../../src/compose/index.ts'

/** A process for commands without signals, and their output. */
export function ioOf(more: Partial<Io> = {}) {
  const out = { stdout: '', stderr: '' }
  const io: Io = {
    stdout: (text) => void (out.stdout += text),
    stderr: (text) => void (out.stderr += text),
    env: {},
    stdin: () => Promise.resolve(''),
    stop: new Promise(() => undefined),
    onReload: () => undefined,
    ...more,
  }
  return { io, out }
}
