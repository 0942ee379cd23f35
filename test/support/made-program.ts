import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

const { changedSince } = createRequire(import.meta.url)('../../bin/built.cjs') as {
  readonly changedSince: (root: string) => readonly string[] | undefined
}
const root = path.join(import.meta.dirname, '../..')

/** Whether dist/ is what would be made of the sources now. */
export const isFresh = (): boolean => changedSince(root)?.length === 0

/** Makes dist/, or the folder that is named as a package has it. */
export const makeProgram = (...folder: string[]): void =>
  void execFileSync(process.execPath, [path.join(root, 'scripts/build.ts'), ...folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })

/** What only a checkout has of dist/. */
const OF_CHECKOUTS: ReadonlySet<string> = new Set(
  ['sources.json', 'checkout'].map((name) => path.join(root, 'dist', name)),
)

/** Puts dist/ of a package into `folder`: a copy where one is made already, which is what making it takes longest for. */
export function putProgram(folder: string): void {
  const dist = path.join(folder, 'dist')
  if (isFresh()) cpSync(path.join(root, 'dist'), dist, { recursive: true, filter: (file) => !OF_CHECKOUTS.has(file) })
  else makeProgram(dist)
}

/** Puts a checkout with its dist/ into `folder`, with packages that are those of this one left out. */
export function putCheckout(folder: string): void {
  if (!isFresh()) makeProgram()
  for (const name of ['bin', 'src', 'lab', 'scripts', 'config', 'dist', 'package.json', 'package-lock.json'])
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true, preserveTimestamps: true })
}
