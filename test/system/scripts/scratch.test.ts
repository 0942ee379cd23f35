import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { isThere } from '../../support/processes.ts'

const SCRATCH = path.join(import.meta.dirname, '../../support/scratch.ts')
/**
 * Starts two processes that end by no signal but the last, as stopped ones do, one with the folder in its environment and one
 * that works in it; says where and which.
 */
const SCRIPT = `
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { openScratch } from ${JSON.stringify(SCRATCH)}
const folder = openScratch('scratch-test')
const { TMPDIR, ...env } = process.env
mkdirSync(folder + '/there')
const children = [{}, { env, cwd: folder + '/there' }].map((how) =>
  spawn('sleep', ['600'], { detached: true, stdio: 'ignore', ...how }),
)
for (const child of children) child.kill('SIGSTOP')
process.stdout.write(JSON.stringify({ folder, pids: children.map(({ pid }) => pid) }) + '\\n')
if (process.argv.includes('end')) process.exit()
setInterval(() => undefined, 1_000)
`

it.each([
  ['is killed', []],
  ['ends', ['end']],
])('leaves neither processes nor files behind when it %s', async (_how, args) => {
  const run = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT, ...args])
  const output = JSON.parse(String(await new Promise((resolve) => run.stdout.once('data', resolve)))) as {
    readonly folder: string
    readonly pids: readonly number[]
  }
  if (args.length === 0) {
    expect([...output.pids.map(isThere), existsSync(output.folder)]).toEqual([true, true, true])
    run.kill('SIGKILL')
  }
  await expect
    .poll(() => [...output.pids.map(isThere), existsSync(output.folder)], { timeout: 15_000 })
    .toEqual([false, false, false])
})
