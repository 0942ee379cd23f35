import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Mutation } from './mutation.ts'

/** Why a mutation does not fit the tree: its file, its line or a test of it is not there; undefined when it fits. */
export function misfit(root: string, { file, find, replace, tests }: Mutation): string | undefined {
  if (!existsSync(path.join(root, file))) return 'there is no such file'
  const count = readFileSync(path.join(root, file), 'utf8').split(find).length - 1
  if (count !== 1) return `its text occurs ${count} times`
  if (find === replace) return 'it changes nothing'
  const missing = tests.find((name) => !existsSync(path.join(root, name)))
  return missing === undefined ? undefined : `there is no ${missing}`
}
