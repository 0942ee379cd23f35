import { readdirSync } from 'node:fs'
import path from 'node:path'
import type { SourceFile } from './architecture.ts'

/** Circles of files that import each other, whatever they import; each as its files in order of their names. */
export function cycles(files: readonly Pick<SourceFile, 'path' | 'imports'>[]): string[][] {
  const targets = new Map(
    files.map((file) => [
      file.path,
      file.imports
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => path.posix.normalize(path.posix.join(path.posix.dirname(file.path), specifier))),
    ]),
  )
  const found: string[][] = []
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const visit = (file: string): void => {
    order.set(file, order.size)
    lowest.set(file, order.get(file) ?? 0)
    stack.push(file)
    for (const next of targets.get(file) ?? []) {
      if (!targets.has(next)) continue
      if (!order.has(next)) visit(next)
      if (stack.includes(next)) lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(next) ?? 0))
    }
    if (lowest.get(file) !== order.get(file)) return
    const cycle = stack.splice(stack.indexOf(file))
    if (cycle.length > 1) found.push(cycle.sort())
  }
  for (const file of targets.keys()) if (!order.has(file)) visit(file)
  return found.sort(([one = ''], [other = '']) => (one < other ? -1 : 1))
}

/** Scripts that are not TypeScript, except those in the folders `pages`, which a browser loads. */
export const scripts = (root: string, pages: readonly string[]): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => /\.(js|mjs|cjs)$/.test(name) && !pages.some((page) => name.startsWith(`${page}/`)))
