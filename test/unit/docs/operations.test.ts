import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { FAILURES } from '../../../src/core/index.ts'
import { declaredMetrics } from '../../support/metrics.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const read = (page: string): string => readFileSync(path.join(ROOT, page), 'utf8')

const table = (page: string, heading: string): string[][] => {
  const section = `\n${read(page)}`.split(`\n${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').slice(1, -1))
}
const quoted = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].flatMap((match) => match[1] ?? [])

describe('pages about operation', () => {
  it('has each metric of the sources with its kind and its labels, and no other', () => {
    const documented = table('docs/metrics.md', '# Metrics').map(([name, kind, labels]) => ({
      name: quoted(name).join(),
      kind: kind?.trim(),
      labels: quoted(labels),
    }))
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name)
    const found = declaredMetrics()
    expect(found.length).toBeGreaterThan(15)
    expect(documented.toSorted(byName)).toEqual(found.toSorted(byName))
  })

  it('troubleshoots reasons that exist', () => {
    const reasons = table('docs/troubleshoot.md', '## By reason').flatMap(([cell]) => quoted(cell))
    expect(reasons.length).toBeGreaterThan(25)
    expect(reasons.filter((reason) => !Object.hasOwn(FAILURES, reason))).toEqual([])
    expect(reasons).toHaveLength(new Set(reasons).size)
  })

  it('shows queries over metrics that exist', () => {
    const names = new Set(declaredMetrics().map(({ name }) => name))
    const queries = /```promql\n(.*?)```/s.exec(read('docs/monitor.md'))?.[1] ?? ''
    const used = [...queries.matchAll(/extauth_[a-z_]+/g)].map((match) => match[0])
    expect(used.length).toBeGreaterThan(4)
    expect(used.filter((name) => !names.has(name))).toEqual([])
  })
})
