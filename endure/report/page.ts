import { MEASURES } from '../growth/sample.ts'
import type { RunResult } from '../result.ts'
import { linesOf, plotOf } from './plot.ts'
import { rowOf } from './text.ts'

const [BEGIN, END] = ['<!-- Made by `npm run endure -- --page`. -->', '<!-- End of what is made. -->']

const RUNS = ['<!-- Made by `npm run endure -- --runs N --page`. -->', '<!-- End of the runs. -->'] as const

/** The page with the report of a run instead of the previous one. */
export const pageWith = (page: string, result: RunResult): string => withBlock(page, [BEGIN, END], reportOf(result))

/** The page with a table of several runs instead of the previous one. */
export const pageWithRuns = (page: string, results: readonly RunResult[]): string =>
  withBlock(page, RUNS, runsReportOf(results))

function withBlock(page: string, [begin, end]: readonly [begin: string, end: string], text: string): string {
  const block = `${begin}\n\n${text}\n\n${end}`
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  return from < 0 || to < 0
    ? `${page.trimEnd()}\n\n${block}\n`
    : page.slice(0, from) + block + page.slice(to + end.length)
}

function runsReportOf(results: readonly RunResult[]): string {
  const [first] = results
  const failures = results.reduce((sum, result) => sum + result.failures, 0)
  return [
    `## ${results.length} runs of ${duration(first?.seconds ?? 0)}`,
    '',
    `Program: mcp-extauth ${first?.version ?? ''}. Machine: ${first?.machine ?? ''}. ${first?.callers ?? 0} callers at a time.`,
    `**${failures === 0 ? 'No failures.' : `${failures} failures.`}**`,
    '',
    '| seed | minutes | callers in all | answers | faults | failures | the machine gave no time for |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...results.map((result) => `| ${Object.values(rowOf(result)).join(' | ')} s |`),
  ].join('\n')
}

/** A link has no blanks. */
const pictureOf = (measure: string): string => `endurance-${measure.replaceAll(' ', '-')}.svg`

/** Names and texts of the pictures that the page shows. */
export const picturesOf = (result: RunResult): readonly (readonly [name: string, svg: string])[] =>
  MEASURES.map(({ name, unit }) => [
    pictureOf(name),
    plotOf({
      title: name,
      unit,
      lines: linesOf(result.samples, name),
      faults: result.faults,
      seconds: result.seconds,
    }),
  ])

function reportOf(result: RunResult): string {
  const { answers, changes, seconds } = result
  const total = Object.values(answers).reduce((sum, count) => sum + count, 0)
  return [
    `## A run of ${duration(seconds)}`,
    '',
    `Program: mcp-extauth ${result.version}. Machine: ${result.machine}. Seed: \`${result.seed}\`.`,
    `${result.callers} callers at a time and ${result.lives} in all,`,
    `${total} answers, ${result.faults.length} faults, ${changes.reloads} reloads, ${changes.secrets} rotations of secrets, ${changes.keys} of keys;`,
    `${result.secrets} secrets looked for in ${result.logLines} log lines, ${result.searched.pages} pages and ${result.searched.values} keys and values of Redis.`,
    `**${result.failures === 0 ? 'No failures.' : `${result.failures} failures.`}** The machine gave no time for ${result.stalledSeconds} s.`,
    '',
    '| answer | how often |',
    '| --- | ---: |',
    ...Object.entries(answers).map(([name, count]) => `| ${name} | ${count} |`),
    '',
    '| fault | how often | seconds |',
    '| --- | ---: | ---: |',
    ...[...Map.groupBy(result.faults, ({ name }) => name)]
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(
        ([name, own]) => `| ${name} | ${own.length} | ${own.reduce((sum, one) => sum + one.seconds, 0).toFixed(0)} |`,
      ),
    '',
    ...growthOf(result),
    '| keys in Redis | how many | the longest has seconds to live |',
    '| --- | ---: | ---: |',
    ...result.keys.map(({ kind, count, longestSeconds }) => `| \`${kind}\` | ${count} | ${longestSeconds} |`),
    '',
    ...MEASURES.map(({ name }) => `![${name} over the run](images/${pictureOf(name)})\n`),
  ]
    .join('\n')
    .trimEnd()
}

/** Evaluated measures: the pictures show the rest. */
function growthOf({ growth }: RunResult): readonly string[] {
  const evaluated = growth.flatMap((one) => (one.bound === undefined ? [] : [{ ...one, bound: one.bound }]))
  if (evaluated.length === 0) return []
  return [
    '| growth | of | at first | at the end | per hour | at most in the evaluated part |',
    '| --- | --- | ---: | ---: | ---: | ---: |',
    ...evaluated.map(
      ({ measure, of, from, to, perHour, bound }) =>
        `| ${measure} | ${of} | ${from.toFixed(0)} | ${to.toFixed(0)} | ${perHour.toFixed(1)} | ${bound.toFixed(0)} |`,
    ),
    '',
  ]
}

const duration = (seconds: number): string =>
  seconds >= 3_600 ? `${(seconds / 3_600).toFixed(1)} h` : `${Math.round(seconds / 60)} min`
