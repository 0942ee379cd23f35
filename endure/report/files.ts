import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import type { RunResult } from '../result.ts'
import { pageWith, pageWithRuns, picturesOf } from './page.ts'

const at = (name: string): string => fileURLToPath(new URL(`../../docs/engineering/${name}`, import.meta.url))

/** Written beside and moved into place: an aborted write keeps the previous file. */
export function write(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

/** Puts one run with its pictures, or the table of several, into the docs of this checkout. */
export async function putOnPage(shown: RunResult | readonly RunResult[]): Promise<void> {
  const page = at('endurance.md')
  const before = readFileSync(page, 'utf8')
  const isOne = 'seed' in shown
  const after = isOne ? pageWith(before, shown) : pageWithRuns(before, shown)
  write(page, await format(after, { ...(await resolveConfig(page)), filepath: page }))
  if (isOne) for (const [name, svg] of picturesOf(shown)) write(at(`images/${name}`), svg)
}
