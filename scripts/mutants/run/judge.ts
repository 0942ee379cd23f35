import path from 'node:path'
import { createVitest, type TestModule } from 'vitest/node'

// A process of its own in a copy of the tree: keeps one vitest with everything that it has read, and runs test files when
// its parent asks, one after the other until one fails. A changed file is read again.

/** A request of the parent. */
export interface Question {
  /** Files that are no longer what they were when the last question was asked, below the copy. */
  readonly changed: readonly string[]
  /** Test files, in the order in which they run. */
  readonly tests: readonly string[]
}

/** The first failure, if there was one. */
export interface Answer {
  readonly tookMs: number
  readonly failed?: { readonly test: string; readonly name: string; readonly isLoaded: boolean }
}

const root = process.cwd()
const vitest = await createVitest('test', { root, watch: false, bail: 1, maxWorkers: 1, retry: 0, reporters: [{}] })
await vitest.standalone()
await vitest.globTestSpecifications()

process.on('disconnect', () => process.exit())
process.on('message', (question: Question) => {
  void answer(question).then((found) => process.send?.(found))
})
process.send?.('ready')

async function answer({ changed, tests }: Question): Promise<Answer> {
  const startedMs = performance.now()
  for (const file of changed) vitest.invalidateFile(path.join(root, file))
  for (const test of tests) {
    const failed = await run(test)
    if (failed !== undefined) return { tookMs: performance.now() - startedMs, failed: { test, ...failed } }
  }
  return { tookMs: performance.now() - startedMs }
}

async function run(test: string): Promise<Omit<NonNullable<Answer['failed']>, 'test'> | undefined> {
  const moduleId = path.join(root, test)
  const specifications = vitest.getModuleSpecifications(moduleId)
  if (specifications.length === 0) return { name: 'vitest does not know this file', isLoaded: false }
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications)
  // An entry for each project that has the file.
  const modules = testModules.filter((found) => found.moduleId === moduleId)
  const module = modules.find((found) => !found.ok()) ?? modules[0]
  if (module?.ok() === true && unhandledErrors.length === 0) return undefined
  return { name: nameOf(module, unhandledErrors), isLoaded: module !== undefined && module.children.size > 0 }
}

function nameOf(module: TestModule | undefined, unhandled: readonly unknown[]): string {
  for (const test of module?.children.allTests('failed') ?? []) return test.fullName
  const [error] = [...(module?.errors() ?? []), ...unhandled]
  return error instanceof Error || (typeof error === 'object' && error !== null && 'message' in error)
    ? (String(error.message).split('\n', 1)[0] ?? '')
    : 'a set-up failed'
}
