import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const CLI = path.join(import.meta.dirname, '../../../../node_modules/.bin/conformance')
const CLIENT = path.join(import.meta.dirname, '../../../support/e2e/authserver/program-client.ts')

test.each([
  ['auth/client-credentials-jwt', 'client-credentials-jwt-verified'],
  ['auth/client-credentials-basic', 'client-credentials-basic-auth'],
])(
  'the proxy with a token of its own passes %s of the official conformance suite',
  async (scenario, check) => {
    const args = [
      CLI,
      'client',
      '--command',
      `${process.execPath} ${CLIENT}`,
      '--scenario',
      scenario,
      '--timeout',
      '90000',
    ]
    const said = await promisify(execFile)(process.execPath, args, { timeout: 100_000 }).catch(
      (failed: { stdout: string; stderr: string }) => failed,
    )
    const output = `${said.stdout}\n${said.stderr}`
    expect(output).toMatch(/Passed: (\d+)\/\1, 0 failed/)
    expect(output).not.toContain('CLIENT EXITED')
    expect(output).toContain(check)
  },
  120_000,
)
