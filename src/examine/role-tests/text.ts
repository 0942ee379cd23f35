import { decisionLines, ruleLines } from '../explain/explain-text.ts'
import type { CaseResult } from './evaluate.ts'
import { FALLBACK, type Unreached } from './reach.ts'
import type { TestRun } from './run.ts'

/** Renders the result as text: failures with their trace, unreached mappings, and a summary. */
export function renderRun(run: TestRun, options: { readonly verbose: boolean }): string {
  const lines: string[] = []
  for (const [file, results] of byFile(run.results)) {
    const failed = results.filter(({ mismatches }) => mismatches.length > 0)
    lines.push(`${failed.length === 0 ? '✓' : '✗'} ${file} (${plural(results.length, 'case')})`)
    for (const result of results) {
      if (result.mismatches.length > 0) lines.push(...failureLines(result))
      else if (options.verbose) lines.push(`  ✓ ${result.case.name}`)
    }
  }
  const { unreached, ways } = run.reach
  if (unreached.length > 0) lines.push('', 'No case reaches:', ...unreached.map((way) => `  ${unreachedLine(way)}`))
  lines.push('', `${run.passed} passed, ${run.failed} failed (${plural(run.results.length, 'case')})`)
  lines.push(`${ways - unreached.length} of ${ways} mappings, fallbacks and rules reached`)
  return `${lines.join('\n')}\n`
}

/** One line about an unreached mapping or fallback. */
export function unreachedLine({ config, file, line, mapping, rule, roleArn, evaluated }: Unreached): string {
  const what = mapping === undefined ? rule : `mapping ${mapping}, ${rule}`
  const why = evaluated === 0 ? 'never evaluated' : `evaluated for ${plural(evaluated, 'case')}, never chosen`
  return `${config} ${what} → ${roleArn}${mapping === undefined && rule === FALLBACK ? '' : ` (${why})`}, ${file}:${line}`
}

/** What was expected, what came, and the way of the choice as `extauth explain` gives it. */
export function failureLines({ case: each, decision, rules, mismatches, notes }: CaseResult): string[] {
  return [
    `  ✗ ${each.name}  ${each.file}:${each.line}`,
    ...mismatches.flatMap(({ what, expected, actual }) => [
      `      expected ${what.padEnd(12)}${expected}`,
      `      got      ${' '.repeat(12)}${actual}`,
    ]),
    ...[
      ...(each.request === undefined ? [] : ruleLines(rules)),
      ...(decision === undefined ? [] : decisionLines(decision)),
    ].map((line) => `        ${line}`),
    ...notes.map((note) => `        note          ${note}`),
  ]
}

function byFile(results: readonly CaseResult[]): ReadonlyMap<string, readonly CaseResult[]> {
  const files = new Map<string, CaseResult[]>()
  for (const result of results) {
    const list = files.get(result.case.file)
    if (list === undefined) files.set(result.case.file, [result])
    else list.push(result)
  }
  return files
}

const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`
