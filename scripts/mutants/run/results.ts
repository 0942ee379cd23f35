import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Mutation, Verdict } from '../mutation.ts'

/** The result of a mutation, and the test that detected it. */
export interface Result {
  readonly verdict: Verdict
  readonly by?: string
}

interface Line extends Result {
  readonly key: string
}

/** The test files of a mutation: folders are the files in them. */
export function testFilesOf(root: string, { tests }: Pick<Mutation, 'tests'>): string[] {
  return tests.flatMap((name) =>
    name.endsWith('.test.ts')
      ? [name]
      : globSync(`${name}/**/*.test.ts`, { cwd: root })
          .map((found) => found.split(path.sep).join('/'))
          .sort(),
  )
}

/** Names a mutation together with the texts of its file and of its tests: a result counts while these are the same. */
export function keyOf(root: string, mutation: Mutation): string {
  const hash = createHash('sha256')
  const texts = [mutation.file, ...testFilesOf(root, mutation)].map((name) =>
    readFileSync(path.join(root, name), 'utf8'),
  )
  hash.update(JSON.stringify([mutation.file, mutation.find, mutation.replace, ...texts]))
  return hash.digest('base64url')
}

/** Results by key in a file of lines, each written when it is known: a run that is cut can go on. */
export class Results {
  readonly #file: string
  readonly #known = new Map<string, Result>()

  constructor(file: string) {
    this.#file = file
    for (const { key, ...result } of linesOf(file)) this.#known.set(key, result)
  }

  get(key: string): Result | undefined {
    return this.#known.get(key)
  }

  add(key: string, result: Result): void {
    this.#known.set(key, result)
    mkdirSync(path.dirname(this.#file), { recursive: true })
    appendFileSync(this.#file, `\n${JSON.stringify({ key, ...result } satisfies Line)}\n`)
  }
}

function linesOf(file: string): Line[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Line]
      } catch {
        // A run that was cut may have been cut in a line.
        return []
      }
    })
}
