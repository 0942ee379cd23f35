import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const PROBE = path.join(import.meta.dirname, '../../../endure/world/probe.ts')

test('a failed write of the probe ends no process', async () => {
  const program = 'gc(); setTimeout(() => console.log("goes on"), 300)'
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--expose-gc', `--import=${PROBE}`, '--eval', program],
    // A folder that is not there refuses like a process without descriptors.
    { env: { ...process.env, ENDURE_PROBE: path.join(import.meta.dirname, 'not-there', 'probe') } },
  )
  expect(stdout).toBe('goes on\n')
})
