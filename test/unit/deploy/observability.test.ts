import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { declaredMetrics } from '../../support/metrics.ts'

const FOLDER = path.join(import.meta.dirname, '../../../config/observability')
const read = (name: string): string => readFileSync(path.join(FOLDER, name), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}
interface AlertTest {
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[]
  readonly input_series: readonly { readonly series: string }[]
}
interface Panel {
  readonly title: string
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>
  readonly targets: readonly { readonly expr: string }[]
}

const RULES = (parse(read('alerts.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules)
const TESTS = (parse(read('alerts.test.yaml')) as { tests: AlertTest[] }).tests
const DASHBOARD = JSON.parse(read('dashboard.json')) as {
  panels: Panel[]
  templating: { list: { name: string; query: string }[] }
}

/** Labels that every series may have. */
const GIVEN = new Set(['le', 'job', 'instance'])

/** Labels by the name of a series. */
const METRICS = new Map<string, Set<string>>()
for (const { name, kind, labels } of declaredMetrics())
  for (const each of kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name])
    METRICS.set(each, new Set([...(METRICS.get(each) ?? []), ...labels]))

/** Names and labels that a query uses and no metric has. */
function strangersIn(query: string): string[] {
  const strangers: string[] = []
  const used = new Set<string>()
  for (const [, name = '', selector = ''] of query.matchAll(/(extauth_\w+)(?:\{([^}]*)\})?/g)) {
    const labels = METRICS.get(name)
    if (labels === undefined) strangers.push(name)
    for (const label of labels ?? []) used.add(label)
    for (const [, label = ''] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g))
      if (labels?.has(label) === false && !GIVEN.has(label)) strangers.push(`${name}{${label}}`)
  }
  for (const [, list = ''] of query.matchAll(/\bby\s*\(([^)]*)\)/g))
    for (const label of list.split(',').map((text) => text.trim()))
      if (!used.has(label) && !GIVEN.has(label)) strangers.push(`by (${label})`)
  return strangers
}

describe('config/observability', () => {
  it('finds a metric and a label that do not exist', () => {
    expect(strangersIn('sum by (user) (rate(extauth_requests{route="a"}[5m]))')).toEqual([
      'extauth_requests',
      'by (user)',
    ])
    expect(strangersIn('extauth_requests_total{path="/"}')).toEqual(['extauth_requests_total{path}'])
    expect(strangersIn('rate(extauth_request_duration_seconds[5m])')).toEqual(['extauth_request_duration_seconds'])
  })

  it.each(RULES.map((rule) => [rule.alert, rule] as const))('%s asks for metrics and labels that exist', (_, rule) => {
    expect(strangersIn(rule.expr)).toEqual([])
    expect(rule.labels['severity']).toMatch(/^(page|ticket)$/)
    expect(rule.annotations['summary']).toMatch(/\w/)
    expect(rule.annotations['description']).toMatch(/\w/)
    // A label that the expression does not keep would be empty in the text.
    for (const [, label = ''] of JSON.stringify(rule.annotations).matchAll(/\$labels\.(\w+)/g))
      expect([label, strangersIn(rule.expr)]).toEqual([label, []])
  })

  it('has a section of the handbook for each alert, and none for others', () => {
    const handbook = readFileSync(path.join(FOLDER, '../../docs/alerts.md'), 'utf8')
    const sections = handbook.split(/^## /m).slice(1)
    expect(sections.map((text) => text.split('\n')[0])).toEqual(RULES.map(({ alert }) => alert))
    for (const text of sections) expect(text.length).toBeGreaterThan(120)
    for (const { alert, annotations } of RULES)
      expect(annotations['runbook_url']).toBe(`docs/alerts.md#${alert.toLowerCase()}`)
    const named = [...handbook.matchAll(/`(extauth_\w+)/g)].map((match) => match[1] ?? '')
    expect(named.filter((name) => !METRICS.has(name) && !METRICS.has(`${name}_bucket`))).toEqual([])
  })

  it('tests that each alert fires, and that it is silent where it should be, with series that exist', () => {
    const outcomes = (isFiring: boolean) =>
      TESTS.flatMap((test) => test.alert_rule_test)
        .filter(({ exp_alerts: alerts }) => alerts.length > 0 === isFiring)
        .map(({ alertname }) => alertname)
    const names = RULES.map(({ alert }) => alert)
    expect(new Set(names).size).toBe(names.length)
    expect(new Set(outcomes(true))).toEqual(new Set(names))
    expect(new Set(outcomes(false))).toEqual(new Set(names))
    const series = TESTS.flatMap(({ input_series: list }) => list.map((each) => each.series))
    expect(series.flatMap(strangersIn)).toEqual([])
  })

  it('shows on the dashboard what exists, each panel in its own place', () => {
    const queries = DASHBOARD.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    expect(queries.length).toBeGreaterThan(20)
    expect(queries.flatMap(strangersIn)).toEqual([])
    // The metrics to watch in docs/aws.md: calls by hop, age and remaining life of the oldest identity.
    const ofAws = [...METRICS.keys()].filter((name) => name.startsWith('extauth_aws_'))
    expect(ofAws.filter((name) => !queries.some((query) => query.includes(name)))).toEqual([])
    const places = DASHBOARD.panels.map(({ gridPos }) => `${gridPos.x},${gridPos.y}`)
    expect(new Set(places).size).toBe(places.length)
    const variables = new Set(DASHBOARD.templating.list.map(({ name }) => name))
    const named = [...JSON.stringify(DASHBOARD.panels).matchAll(/\$\{?(\w+)/g)].map((match) => match[1] ?? '')
    expect(named.filter((name) => !variables.has(name) && !name.startsWith('__'))).toEqual([])
    expect(DASHBOARD.templating.list.flatMap(({ query }) => strangersIn(query))).toEqual([])
  })
})
