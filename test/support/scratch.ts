import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/**
 * Waits for the end of its input, then ends all processes that use this folder, and deletes it. Processes that overwrite their
 * environment, as nginx does, are found by their working directory.
 */
const CLEAN = `
cat >/dev/null
for file in $(grep -lzxsF "TMPDIR=$1" /proc/[0-9]*/environ; find /proc/[0-9]*/cwd -maxdepth 0 -lname "$1/*"); do
  process=\${file#/proc/}
  kill -KILL "\${process%/*}"
done
for try in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf "$1" 2>/dev/null && exit
  sleep 0.1
done
`
const PARENT_EVERY_MS = 1_000

/**
 * From now on everything temporary of this process, and of those that it starts, is in a folder of their own, which is given.
 * It goes with this process, however that ends, and so do all processes that were started with it (Linux).
 */
export function openScratch(name: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), `${name}-`))
  const { PATH = '' } = process.env
  const cleaner = spawn('/bin/sh', ['-c', CLEAN, `${name}-cleaner`, folder], {
    // Of a session of its own: what ends this process and its group leaves it alone.
    detached: true,
    env: { PATH: `${PATH}:/usr/bin:/bin` },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  cleaner.unref()
  process.env['TMPDIR'] = folder
  return folder
}

/** Calls `end` once who started this with npm has gone: npm passes no signal on. */
export function watchNpm(end: () => void): void {
  if (process.env['npm_lifecycle_event'] === undefined) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    end()
  }, PARENT_EVERY_MS).unref()
}
