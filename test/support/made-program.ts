import { execFileSync } from 'node:child_process'
import { cpSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

const built = createRequire(import.meta.url)('../../bin/built.cjs') as {
  readonly isFresh: (root: string) => boolean
}
const root = path.join(import.meta.dirname, '../..')

/** Whether dist/ is what would be made of the sources now. */
export const isFresh = (): boolean => built.isFresh(root)

/** Makes dist/ of a checkout, default this one, or the folder that is named as a package has it. */
export const makeProgram = (checkout = root, ...folder: string[]): void =>
  void execFileSync(process.execPath, [path.join(checkout, 'scripts/build.ts'), ...folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })

/** Puts dist/ of a package into `folder`: a copy where there is a fresh one, which takes less than making it. */
export function putProgram(folder: string): void {
  const dist = path.join(folder, 'dist')
  if (isFresh())
    cpSync(path.join(root, 'dist'), dist, { recursive: true, filter: (file) => path.basename(file) !== 'sources.json' })
  else makeProgram(root, dist)
}

/** Puts a checkout with its dist/ into `folder`, a copy where there is a fresh one; its packages are those of this checkout. */
export function putCheckout(folder: string): void {
  const put = (name: string): void =>
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true, preserveTimestamps: true })
  for (const name of ['bin', 'src', 'lab', 'scripts', 'config', 'package.json', 'package-lock.json']) put(name)
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  if (isFresh()) put('dist')
  else makeProgram(folder)
}
