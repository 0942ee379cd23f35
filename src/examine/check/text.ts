import type { CheckResult } from './result.ts'
import type { CheckedSection } from './run.ts'

const MARKS: Readonly<Record<CheckResult['status'], string>> = { ok: '✓', warning: '!', failed: '✗', skipped: '–' }
const WIDTH = 20

/** Renders a section: one line per test, with the remedy below failures and warnings. */
export function renderSection({ title, checks }: CheckedSection): string {
  const lines = checks.flatMap(({ check, subject, status, detail, remedy }) => [
    `  ${MARKS[status]} ${check.padEnd(WIDTH)} ${subject}: ${detail}`,
    ...(remedy === undefined ? [] : [`    ${' '.repeat(WIDTH)} → ${remedy}`]),
  ])
  return `${title}\n${lines.join('\n')}\n\n`
}

/** Renders failures and warnings of a section; an empty string if there are none. */
export function renderFailures(section: CheckedSection): string {
  const checks = section.checks.filter(({ status }) => status === 'failed' || status === 'warning')
  return checks.length === 0 ? '' : renderSection({ ...section, checks })
}

/** Renders the number of tests by status. */
export function renderSummary(sections: readonly CheckedSection[]): string {
  const count = countsOf(sections)
  const warnings = count.warning === 0 ? '' : `, ${count.warning} warning${count.warning === 1 ? '' : 's'}`
  const skipped = count.skipped === 0 ? '' : `, ${count.skipped} skipped`
  return `${count.ok} passed, ${count.failed} failed${warnings}${skipped}\n`
}

/** Number of tests by status. */
export function countsOf(sections: readonly CheckedSection[]): Record<CheckResult['status'], number> {
  const count = { ok: 0, warning: 0, failed: 0, skipped: 0 }
  for (const { checks } of sections) for (const { status } of checks) count[status] += 1
  return count
}
