import { type Reporter, type TestCase } from 'vitest/node'

/**
 * Prints at the end which tests passed only when they were tried again (`npm test` tries a test three times, since a starved
 * machine can miss a deadline that is the subject of a test). Each line is a test to mend: it trusts time, or it found a race.
 */
export class TriedAgainReporter implements Reporter {
  readonly #tests: string[] = []

  onTestCaseResult(test: TestCase): void {
    const diagnostic = test.diagnostic()
    if (diagnostic?.flaky === true) {
      this.#tests.push(`${test.module.relativeModuleId} > ${test.fullName} (try ${diagnostic.retryCount + 1})`)
    }
  }

  onTestRunEnd(): void {
    for (const test of this.#tests) {
      process.stdout.write(`TRIED AGAIN ${test}\n`)
    }
  }
}
