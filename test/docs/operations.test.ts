import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-api'
import { describe, expect, it } from 'vitest'
import { FAILURES } from '../../src/core/index.ts'

const ROOT = path.join(import.meta.dirname, '../..')
const PAGE = readFileSync(path.join(ROOT, 'docs/operations.md'), 'utf8')

interface Metric {
  readonly name: string
  readonly kind: string
  readonly labels: readonly string[]
}

/** Strings of an array literal, or of the constant of this file that is named. */
function strings(node: ts.Expression | undefined, file: ts.SourceFile): string[] {
  if (node === undefined) return []
  if (ts.isArrayLiteralExpression(node)) return node.elements.filter(ts.isStringLiteral).map((item) => item.text)
  let found: string[] = []
  const look = (inner: ts.Node): void => {
    if (ts.isVariableDeclaration(inner) && inner.name.getText(file) === node.getText(file))
      found = strings(inner.initializer, file)
    else ts.forEachChild(inner, look)
  }
  look(file)
  return found
}

/** Every `metrics.counter('extauth_…', help, labels)` and the like in the sources. */
function declared(): Metric[] {
  const metrics: Metric[] = []
  for (const name of globSync('src/**/*.ts', { cwd: ROOT })) {
    const file = ts.createSourceFile(name, readFileSync(path.join(ROOT, name), 'utf8'), ts.ScriptTarget.Latest)
    const look = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
        const kind = node.expression.name.text
        const [first, , labels] = node.arguments
        if (/^(counter|gauge|histogram)$/.test(kind) && first !== undefined && ts.isStringLiteral(first))
          metrics.push({ name: first.text, kind, labels: strings(labels, file) })
      }
      ts.forEachChild(node, look)
    }
    look(file)
  }
  // Two servers may have a metric in common.
  return [...new Map(metrics.map((metric) => [JSON.stringify(metric), metric])).values()]
}

const table = (heading: string): string[][] => {
  const section = PAGE.split(`\n${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').slice(1, -1))
}
const quoted = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].flatMap((match) => match[1] ?? [])

describe('docs/operations.md', () => {
  it('has each metric of the sources with its kind and its labels, and no other', () => {
    const documented = table('## Metrics').map(([name, kind, labels]) => ({
      name: quoted(name).join(),
      kind: kind?.trim(),
      labels: quoted(labels),
    }))
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name)
    const found = declared()
    expect(found.length).toBeGreaterThan(15)
    expect(documented.toSorted(byName)).toEqual(found.toSorted(byName))
  })

  it('troubleshoots reasons that exist', () => {
    const reasons = table('## Troubleshooting by reason').flatMap(([cell]) => quoted(cell))
    expect(reasons.length).toBeGreaterThan(25)
    expect(reasons.filter((reason) => !Object.hasOwn(FAILURES, reason))).toEqual([])
    expect(reasons).toHaveLength(new Set(reasons).size)
  })

  it('shows queries over metrics that exist', () => {
    const names = new Set(declared().map(({ name }) => name))
    const queries = /```promql\n(.*?)```/s.exec(PAGE)?.[1] ?? ''
    const used = [...queries.matchAll(/extauth_[a-z_]+/g)].map((match) => match[0])
    expect(used.length).toBeGreaterThan(4)
    expect(used.filter((name) => !names.has(name))).toEqual([])
  })
})
