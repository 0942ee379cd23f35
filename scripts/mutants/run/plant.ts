import { readFileSync } from 'node:fs'
import path from 'node:path'
import { type Mutation, mutate } from '../mutation.ts'
import { copyTree, type Copy } from './copy.ts'
import { Judging } from './judging.ts'
import type { Result } from './results.ts'

/** Time limit of a test file without a known duration. */
const FIRST_DEADLINE_MS = 240_000
/** Beside ten times what its tests take unbroken: a test that hangs because of a mutation has noticed it. */
const LEAST_DEADLINE_MS = 60_000

/** A copy of the tree with a process that runs tests in it. */
interface Bench {
  readonly copy: Copy
  readonly judging: Judging
}

/** Plants mutations in copies of the tree, as many at a time as there are copies. */
export class Planting {
  readonly #benches: readonly Bench[]
  readonly #tookMs = new Map<string, number>()

  constructor(root: string, files: readonly string[], jobs: number) {
    this.#benches = Array.from({ length: jobs }, () => {
      const copy = copyTree(root, files)
      return { copy, judging: new Judging(copy.directory) }
    })
  }

  /** Runs test files as they are, so that it is known how long each takes; those that fail, by name, with the test that does. */
  async baseline(tests: readonly string[], seen: (done: number) => void): Promise<Map<string, string>> {
    const failing = new Map<string, string>()
    let done = 0
    await this.#share(tests, async ({ judging }, test) => {
      const run = () => judging.ask({ changed: [], tests: [test] }, FIRST_DEADLINE_MS)
      let outcome = await run()
      // Once more on a busy machine, before it is believed.
      if (outcome.failed !== undefined) outcome = await run()
      if (outcome.failed !== undefined) failing.set(test, outcome.failed.name)
      this.#tookMs.set(test, outcome.tookMs)
      seen((done += 1))
    })
    return failing
  }

  /** How long tests took unbroken, in milliseconds. */
  costOf(tests: readonly string[]): number {
    return tests.reduce((sum, test) => sum + (this.#tookMs.get(test) ?? 0), 0)
  }

  /** Plants, tests (the quickest first) and takes back, one mutation after the other in every copy. */
  async judge<T extends { readonly mutation: Mutation; readonly tests: readonly string[] }>(
    planted: readonly T[],
    seen: (one: T, result: Result) => void,
  ): Promise<void> {
    await this.#share(planted, async ({ copy, judging }, one) => {
      const { file } = one.mutation
      const original = readFileSync(path.join(copy.directory, file), 'utf8')
      const tests = one.tests.toSorted((a, b) => this.costOf([a]) - this.costOf([b]))
      copy.write(file, mutate(one.mutation, original))
      const outcome = await judging.ask({ changed: [file], tests }, LEAST_DEADLINE_MS + 10 * this.costOf(tests))
      copy.write(file, original)
      await judging.ask({ changed: [file], tests: [] }, LEAST_DEADLINE_MS)
      const { failed } = outcome
      if (failed === undefined) seen(one, { verdict: 'survived' })
      else seen(one, { verdict: failed.isLoaded ? 'killed' : 'does not load', by: `${failed.test}: ${failed.name}` })
    })
  }

  close(): void {
    for (const { copy, judging } of this.#benches) {
      judging.close()
      copy.close()
    }
  }

  async #share<T>(work: readonly T[], each: (bench: Bench, one: T) => Promise<void>): Promise<void> {
    const queue = work.values()
    await Promise.all(
      this.#benches.map(async (bench) => {
        for (const one of queue) await each(bench, one)
      }),
    )
  }
}
