import path from 'node:path'
import { type Reporter, type TestCase, type TestModule } from 'vitest/node'

/**
 * Prints at the end which tests passed only when they were tried again (`npm test` tries a test three times, since a starved
 * machine can miss a deadline that is the subject of a test) and why, and which files have no failed test but a set-up that failed
 * (vitest does not try a hook again; `.ci/run` runs the file once more). Each line is a test to fix: it trusts time, or it
 * found a race.
 */
export class TriedAgainReporter implements Reporter {
  readonly #lines: string[] = []

  onTestCaseResult(test: TestCase): void {
    const diagnostic = test.diagnostic()
    if (diagnostic?.flaky === true) {
      this.#lines.push(
        `TRIED AGAIN ${test.module.relativeModuleId} > ${test.fullName} (try ${diagnostic.retryCount + 1})`,
      )
      for (const { message, stacks } of test.result().errors ?? []) {
        const [place] = stacks ?? []
        const where = place === undefined ? '' : ` (${path.relative('', place.file)}:${place.line})`
        this.#lines.push(`  ${message.split('\n')[0]}${where}`)
      }
    }
  }

  onTestModuleEnd(module: TestModule): void {
    if (module.state() === 'failed' && [...module.children.allTests('failed')].length === 0) {
      this.#lines.push(`SET-UP FAILED ${module.relativeModuleId}`)
    }
  }

  onTestRunEnd(): void {
    for (const line of this.#lines) {
      process.stdout.write(`${line}\n`)
    }
  }
}
