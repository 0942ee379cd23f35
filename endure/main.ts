import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openScratch, watchNpm } from '../test/support/scratch.ts'
import { putOnPage, write } from './report/files.ts'
import { runsText, textOf } from './report/text.ts'
import type { RunResult } from './result.ts'
import { run } from './run.ts'
import { copyProgram } from './world/program.ts'

const HELP = `npm run endure -- [--hours H] [--runs N] [--callers N] [--seed S] [--every SECONDS] [--only TEXTS]
                  [--json FILE] [--heaps DIR] [--page [--from FILE]]

Runs two proxies as processes of their own on Redis with Sentinel, with every type of external auth, before demo services for
everything that they talk to; callers of all kinds; and a fault after the other. Every response is checked by what its caller may
get, and by which refusals the fault of the moment excuses. Exit code 1 when something was wrong; 2 when a run could not be
made, or was broken off. Several may run at the same time; whichever way it ends, nothing is left behind.

  --hours H        How long. Default 0.25.
  --runs N         So many runs, one after the other, with seeds in a row, whatever one of them shows. Default 1.
  --callers N      How many call at a time. Default 500.
  --seed S         Gives the faults and callers of another run again. Default: drawn, and printed.
  --every SECONDS  From one fault to the next. Default 20.
  --only TEXTS     Only faults with one of these, separated by commas, in their name; "none" for none.
  --json FILE      Writes all that was seen, of several runs a list.
  --heaps DIR      Keeps what each process held at the end there, for the memory tools of a browser.
  --page           Puts the report and its plots into docs/engineering/endurance.md and its images; of several runs a table.
  --from FILE      Runs nothing, and takes what --json has written.
`
/** Beside its own time a run needs some for the start and the end of everything, more on a busy machine. */
const PATIENCE_MS = 60 * 60_000
const CLOSING_MS = 60_000
const [FAILED, BROKEN_OFF] = [1, 2]

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
    from: { type: 'string' },
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

/** Aborts when a signal asks for the end; or when npm, which started this, has gone. */
function interruption(): AbortSignal {
  const interrupted = new AbortController()
  const end = (why: string): void => interrupted.abort(new Error(`broken off ${why}`))
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => end(`by ${name}`))
  watchNpm(() => end('with npm'))
  interrupted.signal.addEventListener('abort', () => setTimeout(() => process.exit(BROKEN_OFF), CLOSING_MS).unref())
  return interrupted.signal
}

/** The result of a run; undefined when it could not start. */
async function runOnce(
  options: Omit<Parameters<typeof run>[0], 'signal'>,
  interrupted: AbortSignal,
): Promise<RunResult | undefined> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error('it takes too long')), options.hours * 3_600_000 + PATIENCE_MS)
  try {
    const result = await run({ ...options, signal: AbortSignal.any([interrupted, late.signal]) })
    say(textOf(result))
    return result
  } catch (error) {
    process.stderr.write(`seed ${options.seed}: ${(error as Error).stack ?? String(error)}\n`)
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

async function runAll(count: number): Promise<void> {
  const [hours, callers] = [numberOf('hours', 168), Math.round(numberOf('callers', 20_000))]
  const faultEverySeconds = numberOf('every', 3_600)
  const { heaps } = values
  const only = values.only?.split(',')
  const program = copyProgram(openScratch('endure'))
  const interrupted = interruption()
  const results: RunResult[] = []
  for (const seed of seedsOf(values.seed, count)) {
    say(`seed ${seed}: ${callers} callers for ${hours} h, ${program.version}`)
    const result = await runOnce({ seed, hours, callers, faultEverySeconds, only, heaps, program, say }, interrupted)
    if (result !== undefined) results.push(result)
    // After each: who is killed has what there was.
    const shown = count === 1 ? results[0] : results
    if (values.json !== undefined) write(values.json, `${JSON.stringify(shown ?? [], undefined, 2)}\n`)
    if (interrupted.aborted) break
  }
  if (count > 1) say(runsText(results, count))
  if (results.every(({ failures }) => failures === 0)) process.exitCode = results.length < count ? BROKEN_OFF : 0
  else process.exitCode = FAILED
  const [first] = results
  if (values.page === true && first !== undefined) await putOnPage(count === 1 ? first : results)
}

if (values.help === true) say(HELP)
else if (values.from !== undefined)
  await putOnPage(JSON.parse(readFileSync(values.from, 'utf8')) as RunResult | readonly RunResult[])
else {
  await runAll(Math.round(numberOf('runs', 1_000))).catch((error: unknown) => {
    process.exitCode = BROKEN_OFF
    process.stderr.write(`${(error as Error).stack ?? String(error)}\n`)
  })
  // Nothing that is still open keeps it: neither what a run that was broken off waits for, nor sockets on which Node's own way
  // to the end has waited for ever.
  process.exit()
}
