import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const CLI = path.join(import.meta.dirname, '../../../node_modules/.bin/conformance')
const CLIENT = path.join(import.meta.dirname, '../../support/obtain/vouched-client.ts')
const SCENARIO = 'auth/enterprise-managed-authorization'

test('both legs pass the scenario of the official conformance suite', async () => {
  const args = [
    CLI,
    'client',
    '--command',
    `${process.execPath} ${CLIENT}`,
    '--scenario',
    SCENARIO,
    '--timeout',
    '90000',
  ]
  const said = await promisify(execFile)(process.execPath, args, { timeout: 100_000 }).catch(
    (failed: { stdout: string; stderr: string }) => failed,
  )
  const output = `${said.stdout}\n${said.stderr}`
  expect(output).toMatch(/Passed: (\d+)\/\1, 0 failed/)
  for (const check of ['complete-flow-token-exchange', 'complete-flow-jwt-bearer']) expect(output).toContain(check)
}, 120_000)
