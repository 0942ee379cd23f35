import { execFile } from 'node:child_process'
import path from 'node:path'

/** Result of one scenario of the conformance suite. */
export interface ScenarioResult {
  readonly scenario: string
  readonly passed: number
  readonly failed: number
}

const CLI = path.join(import.meta.dirname, '../../../node_modules/.bin/conformance')

/** Runs every server scenario that applies to `revision` against `url`, with the official conformance suite. */
export async function runConformance(url: string, revision: string): Promise<ScenarioResult[]> {
  const args = [CLI, 'server', '--url', url, '--suite', 'all', '--spec-version', revision]
  const output = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, args, { maxBuffer: 64 * 1024 * 1024, timeout: 120_000 }, (error, stdout) => {
      // It exits with 1 when a check fails; that is a result, not an error.
      if (error !== null && stdout === '') reject(new Error('the conformance suite did not run', { cause: error }))
      else resolve(stdout)
    })
  })
  const summary = output.slice(output.indexOf('=== SUMMARY ==='))
  return [...summary.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)].map(
    ([, scenario = '', passed, failed]) => ({
      scenario,
      passed: Number(passed),
      failed: Number(failed),
    }),
  )
}

/** Names of the scenarios that passed whole, sorted. */
export function passing(results: readonly ScenarioResult[]): string[] {
  return results
    .filter(({ passed, failed }) => failed === 0 && passed > 0)
    .map(({ scenario }) => scenario)
    .toSorted()
}
