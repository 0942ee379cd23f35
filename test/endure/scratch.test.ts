import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'

const SCRATCH = path.join(import.meta.dirname, '../../endure/world/scratch.ts')
/** Starts a process that ends by no signal but the last, as a stopped one does, and says where it is and which. */
const SCRIPT = `
import { spawn } from 'node:child_process'
import { openScratch } from ${JSON.stringify(SCRATCH)}
const folder = openScratch()
const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
child.kill('SIGSTOP')
process.stdout.write(JSON.stringify({ folder, pid: child.pid }) + '\\n')
if (process.argv.includes('end')) process.exit()
setInterval(() => undefined, 1_000)
`

/** One that has ended stays as long as nobody asks how (Z). */
const isThere = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')

it.each([
  ['is killed', []],
  ['ends', ['end']],
])('leaves neither processes nor files behind when it %s', async (_how, args) => {
  const run = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT, ...args])
  const told = JSON.parse(String(await new Promise((resolve) => run.stdout.once('data', resolve)))) as {
    readonly folder: string
    readonly pid: number
  }
  if (args.length === 0) {
    expect([isThere(told.pid), existsSync(told.folder)]).toEqual([true, true])
    run.kill('SIGKILL')
  }
  await expect.poll(() => [isThere(told.pid), existsSync(told.folder)], { timeout: 15_000 }).toEqual([false, false])
})
