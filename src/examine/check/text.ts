import type { CheckResult } from './result.ts'
import type { CheckedSection } from './run.ts'

const MARKS: Readonly<Record<CheckResult['status'], string>> = { ok: '✓', warning: '!', failed: '✗', skipped: '–' }
const WIDTH = 20

/** A section for people: a line per check, and what to do below those that need somebody. */
export function renderSection({ title, checks }: CheckedSection): string {
  const lines = checks.flatMap(({ check, subject, status, detail, remedy }) => [
    `  ${MARKS[status]} ${check.padEnd(WIDTH)} ${subject}: ${detail}`,
    ...(remedy === undefined ? [] : [`    ${' '.repeat(WIDTH)} → ${remedy}`]),
  ])
  return `${title}\n${lines.join('\n')}\n\n`
}

/** The same of what needs somebody; nothing where nothing does. */
export function renderTrouble(section: CheckedSection): string {
  const checks = section.checks.filter(({ status }) => status === 'failed' || status === 'warning')
  return checks.length === 0 ? '' : renderSection({ ...section, checks })
}

/** How many of each. */
export function renderSummary(sections: readonly CheckedSection[]): string {
  const count = countsOf(sections)
  const warned = count.warning === 0 ? '' : `, ${count.warning} to be looked at`
  const skipped = count.skipped === 0 ? '' : `, ${count.skipped} not checked`
  return `${count.ok} fine, ${count.failed} failed${warned}${skipped}\n`
}

/** Number of checks by what came of them. */
export function countsOf(sections: readonly CheckedSection[]): Record<CheckResult['status'], number> {
  const count = { ok: 0, warning: 0, failed: 0, skipped: 0 }
  for (const { checks } of sections) for (const { status } of checks) count[status] += 1
  return count
}
