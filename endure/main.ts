import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pageWith, pageWithRuns, picturesOf } from './report/page.ts'
import { runsText, textOf } from './report/text.ts'
import type { RunResult } from './result.ts'
import { run } from './run.ts'

const HELP = `npm run endure -- [--hours H] [--runs N] [--callers N] [--seed S] [--every SECONDS] [--only TEXTS]
                  [--json FILE] [--heaps DIR] [--page]

Runs two proxies as processes of their own on Redis with Sentinel, with every type of external auth, before stand-ins for
everything that they talk to; callers of all kinds; and a fault after the other. Every answer is judged by what its caller may
get, and by which refusals the fault of the moment excuses. Exit code 1 when something was wrong; 2 when a run could not be
made, or was broken off.

  --hours H        How long. Default 0.25.
  --runs N         So many runs, one after the other, with seeds in a row. Default 1.
  --callers N      How many call at a time. Default 500.
  --seed S         Gives the faults and callers of another run again. Default: drawn, and printed.
  --every SECONDS  From one fault to the next. Default 20.
  --only TEXTS     Only faults with one of these, separated by commas, in their name; "none" for none.
  --json FILE      Writes all that was seen, of several runs a list.
  --heaps DIR      Keeps what each process held at the end there, for the memory tools of a browser.
  --page           Puts the report and its plots into docs/endurance.md and docs/images; of several runs a table.
`
/** Beside its own time a run needs some for the start and the end of everything, more on a busy machine. */
const PATIENCE_MS = 20 * 60_000
const CLOSING_MS = 60_000
const [FAILED, BROKEN_OFF] = [1, 2]

const at = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '0.25' },
    runs: { type: 'string', default: '1' },
    callers: { type: 'string', default: '500' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    every: { type: 'string', default: '20' },
    only: { type: 'string' },
    json: { type: 'string' },
    heaps: { type: 'string' },
    page: { type: 'boolean' },
    help: { type: 'boolean' },
  },
})

function numberOf(name: 'hours' | 'runs' | 'callers' | 'every', most: number): number {
  const value = Number(values[name])
  if (!(value > 0 && value <= most)) throw new Error(`--${name} ${values[name]} is not a number up to ${most}`)
  return value
}

/** The seeds of so many runs: this one and those that follow it. */
const seedsOf = (first: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => {
    if (index === 0) return first
    return /^\d{1,15}$/.test(first) ? String(Number(first) + index) : `${first}-${index}`
  })

/** Written beside and moved into place: whoever breaks off leaves what was there before. */
function write(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

async function runAll(): Promise<void> {
  const [hours, callers] = [numberOf('hours', 168), Math.round(numberOf('callers', 20_000))]
  const faultEverySeconds = numberOf('every', 3_600)
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => interrupted.abort(new Error(`broken off by ${name}`)))
  const results: RunResult[] = []
  const count = Math.round(numberOf('runs', 1_000))
  try {
    for (const seed of seedsOf(values.seed, count)) {
      say(`seed ${seed}: ${callers} callers for ${hours} h`)
      const late = AbortSignal.timeout(hours * 3_600_000 + PATIENCE_MS)
      const signal = AbortSignal.any([interrupted.signal, late])
      signal.addEventListener('abort', () => setTimeout(() => process.exit(BROKEN_OFF), CLOSING_MS).unref())
      const only = values.only?.split(',')
      const result = await run({ seed, hours, callers, faultEverySeconds, only, heaps: values.heaps, say, signal })
      results.push(result)
      say(textOf(result))
    }
  } finally {
    // Also what there is of runs that were broken off.
    if (results.length > 1) say(runsText(results))
  }
  const [first] = results
  if (first === undefined) return
  const isOne = count === 1
  if (values.json !== undefined) write(values.json, `${JSON.stringify(isOne ? first : results, undefined, 2)}\n`)
  if (values.page === true) {
    const page = at('../docs/endurance.md')
    const before = readFileSync(page, 'utf8')
    write(page, isOne ? pageWith(before, first) : pageWithRuns(before, results))
    if (isOne) for (const [name, svg] of picturesOf(first)) write(at(`../docs/images/${name}`), svg)
  }
  process.exitCode = results.every(({ failures }) => failures === 0) ? 0 : FAILED
}

if (values.help === true) say(HELP)
else {
  await runAll().catch((error: unknown) => {
    process.exitCode = BROKEN_OFF
    process.stderr.write(`${(error as Error).stack ?? String(error)}\n`)
  })
  // What a run that was broken off had still to wait for keeps nobody here.
  setTimeout(() => process.exit(), 1_000).unref()
}
