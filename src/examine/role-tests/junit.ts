import type { CaseResult } from './evaluate.ts'
import type { TestRun } from './run.ts'
import { failureLines, unreachedLine } from './text.ts'

/** Characters that XML 1.0 §2.2 forbids, even escaped. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const NOT_XML = /[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/**
 * Renders JUnit XML for CI systems: a suite per document, a test case per case. `requireReached` adds a suite for
 * unreached mappings.
 */
export function renderJUnit(run: TestRun, options: { readonly requireReached: boolean }): string {
  const suites = new Map<string, CaseResult[]>()
  for (const result of run.results) {
    const key = `${result.case.file}\n${result.case.suite}`
    suites.set(key, [...(suites.get(key) ?? []), result])
  }
  const parts = [...suites.values()].map(suiteXml)
  if (options.requireReached) parts.push(reachXml(run))
  const extra = options.requireReached ? 1 : 0
  const missed = options.requireReached && run.reach.unreached.length > 0 ? 1 : 0
  const counts = attributes({ tests: run.results.length + extra, failures: run.failed + missed, errors: 0 })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="extauth test" ${counts}>\n${parts.join('')}</testsuites>\n`
}

function suiteXml(results: readonly CaseResult[]): string {
  const [first] = results
  const failures = results.filter(({ mismatches }) => mismatches.length > 0).length
  const time = seconds(results.reduce((sum, { durationMs }) => sum + durationMs, 0))
  const head = attributes({
    name: first?.case.suite ?? '',
    file: first?.case.file ?? '',
    tests: results.length,
    failures,
    errors: 0,
    skipped: 0,
    time,
  })
  return `  <testsuite ${head}>\n${results.map(caseXml).join('')}  </testsuite>\n`
}

function caseXml(result: CaseResult): string {
  const { name, suite, file, line } = result.case
  const head = attributes({ name, classname: suite, file, line, time: seconds(result.durationMs) })
  if (result.mismatches.length === 0) return `    <testcase ${head}/>\n`
  const message = result.mismatches
    .map(({ what, expected, actual }) => `expected ${what} ${expected}, got ${actual}`)
    .join('; ')
  return `    <testcase ${head}>\n${failureXml(message, failureLines(result).join('\n'))}    </testcase>\n`
}

function reachXml({ reach }: TestRun): string {
  const failures = reach.unreached.length === 0 ? 0 : 1
  const head = attributes({ name: 'reached', tests: 1, failures, errors: 0, skipped: 0, time: seconds(0) })
  const each = attributes({
    name: 'each mapping and rule is reached by a case',
    classname: 'reached',
    time: seconds(0),
  })
  const message = `${reach.unreached.length} of ${reach.ways} mappings, fallbacks and rules are not reached`
  const inner = failures === 0 ? '' : failureXml(message, reach.unreached.map(unreachedLine).join('\n'))
  return `  <testsuite ${head}>\n    <testcase ${each}>\n${inner}    </testcase>\n  </testsuite>\n`
}

const failureXml = (message: string, text: string): string =>
  `      <failure ${attributes({ message, type: 'expectation' })}>${escape(text)}</failure>\n`

const attributes = (values: Readonly<Record<string, string | number>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}="${escape(String(value)).replace(/[\t\n\r]/g, ' ')}"`)
    .join(' ')

const escape = (text: string): string =>
  text.replace(NOT_XML, '\uFFFD').replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character)

const seconds = (milliseconds: number): string => (milliseconds / 1000).toFixed(6)
