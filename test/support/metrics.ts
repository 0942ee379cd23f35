import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-api'
import { once } from '../../src/fields/index.ts'

const ROOT = path.join(import.meta.dirname, '../..')

/** A metric as the sources declare it. */
export interface Metric {
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
export const declaredMetrics = once((): readonly Metric[] => {
  const metrics: Metric[] = []
  for (const name of globSync('src/**/*.ts', { cwd: ROOT })) {
    const text = readFileSync(path.join(ROOT, name), 'utf8')
    if (!text.includes("'extauth_")) continue
    const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest)
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
})
