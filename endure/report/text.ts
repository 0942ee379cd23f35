import type { Finding } from '../oracle/findings.ts'
import type { RunResult } from '../result.ts'

const MOST_SHOWN = 40

/** The result of a run, for a terminal. */
export function textOf(result: RunResult): string {
  const { findings, failures } = result
  const total = Object.values(result.answers).reduce((sum, count) => sum + count, 0)
  const lines = [
    '',
    `seed ${result.seed}: ${result.seconds} s, ${result.callers} callers at a time, ${result.lives} in all, ${total} answers`,
    `${result.faults.length} faults; ${result.logLines} log lines read; ${result.secrets} secrets looked for in them, ${result.searched.pages} pages and ${result.searched.values} keys and values of Redis`,
    `${result.changes.reloads} reloads, ${result.changes.secrets} rotations of secrets, ${result.changes.keys} of keys, ${result.changes.providerKeys} of those of the identity provider`,
    '',
    ...columns('answers', result.answers),
    ...columns('warnings and errors in the logs', result.warnings),
    ...growthLines(result),
    'keys in Redis (how many, the longest has seconds to live):',
    ...result.keys.map(
      ({ kind, count, longestSeconds }) => `  ${String(count).padStart(8)}  ${kind.padEnd(20)} ${longestSeconds}`,
    ),
    '',
    failures === 0 ? 'no failures' : `${failures} FAILURES`,
  ]
  if (result.stalledSeconds > 0) lines.push(`the machine gave no time for ${result.stalledSeconds} s`)
  const byKind = Map.groupBy(findings, ({ kind }) => kind)
  for (const [kind, own] of byKind) lines.push(`  ${String(own.length).padStart(6)}  ${kind}`)
  for (const finding of findings.slice(0, MOST_SHOWN)) lines.push(findingText(finding))
  if (failures > MOST_SHOWN) lines.push(`           … and ${failures - MOST_SHOWN} more (--json FILE has up to 500)`)
  if (failures > 0) lines.push('', `again: npm run endure -- --seed ${result.seed}`)
  return lines.join('\n')
}

/** When, what, and under which faults. */
export function findingText({ kind, atSeconds, what, faults }: Finding): string {
  const during = faults.length === 0 ? '' : ` [${faults.join(', ')}]`
  return `${atSeconds.toFixed(1).padStart(8)} s  ${kind}: ${what}${during}`
}

/** Several runs, one line each; `wanted`: how many there should have been. */
export function runsText(results: readonly RunResult[], wanted = results.length): string {
  const failed = results.filter(({ failures }) => failures > 0)
  const missing = wanted - results.length
  return [
    '',
    'seed         minutes  callers  answers  faults  failures  no time for',
    ...results.map((result) => {
      const { seed, minutes, lives, answers, faults, failures, stalledSeconds } = rowOf(result)
      return [
        seed.padEnd(12),
        minutes.padStart(7),
        ...[lives, answers, faults, failures].map((n, at) => String(n).padStart([8, 8, 7, 9][at] ?? 8)),
        `${stalledSeconds} s`.padStart(12),
      ].join(' ')
    }),
    ...(missing === 0 ? [] : [`${missing} of ${wanted} runs could not be made, or were broken off`]),
    failed.length === 0 ? 'no failures' : `FAILURES with ${failed.map(({ seed }) => seed).join(', ')}`,
  ].join('\n')
}

/** The summary of one run among several. */
export const rowOf = ({ seed, seconds, lives, answers, faults, failures, stalledSeconds }: RunResult) => ({
  seed,
  minutes: (seconds / 60).toFixed(1),
  lives,
  answers: Object.values(answers).reduce((sum, count) => sum + count, 0),
  faults: faults.length,
  failures,
  stalledSeconds,
})

const columns = (title: string, counts: Readonly<Record<string, number>>): string[] => [
  `${title}:`,
  ...Object.entries(counts).map(([name, count]) => `  ${String(count).padStart(8)}  ${name}`),
  '',
]

const growthLines = ({ growth }: RunResult): string[] => [
  'growth after the warm-up (at first, at the end, per hour, at most):',
  ...growth.map(
    ({ measure, of, from, to, perHour, bound }) =>
      `  ${of.padEnd(12)} ${measure.padEnd(12)} ${from.toFixed(0).padStart(7)} ${to.toFixed(0).padStart(7)} ${perHour.toFixed(1).padStart(10)} ${bound === undefined ? 'not judged' : bound.toFixed(0).padStart(10)}`,
  ),
  '',
]
