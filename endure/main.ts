import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pageWith, picturesOf } from './report/page.ts'
import { textOf } from './report/text.ts'
import { run } from './run.ts'

const HELP = `npm run endure -- [--hours H] [--callers N] [--seed S] [--every SECONDS] [--only TEXTS] [--json FILE]
                  [--heaps DIR] [--page]

Runs two proxies as processes of their own on Redis with Sentinel, with every type of external auth, before stand-ins for
everything that they talk to; callers of all kinds; and a fault after the other. Every answer is judged by what its caller may
get, and by which refusals the fault of the moment excuses. Exit code 1 when something is wrong.

  --hours H        How long. Default 0.25.
  --callers N      How many call at a time. Default 500.
  --seed S         Gives the faults and callers of another run again. Default: drawn, and printed.
  --every SECONDS  From one fault to the next. Default 20.
  --only TEXTS     Only faults with one of these, separated by commas, in their name; "none" for none.
  --json FILE      Writes all that was seen.
  --heaps DIR      Keeps what each process held at the end there, for the memory tools of a browser.
  --page           Puts the report and its plots into docs/endurance.md, and docs/images.
`
const at = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '0.25' },
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

function numberOf(name: 'hours' | 'callers' | 'every', most: number): number {
  const value = Number(values[name])
  if (!(value > 0 && value <= most)) throw new Error(`--${name} ${values[name]} is not a number up to ${most}`)
  return value
}

if (values.help === true) say(HELP)
else {
  const result = await run({
    seed: values.seed,
    hours: numberOf('hours', 168),
    callers: Math.round(numberOf('callers', 20_000)),
    faultEverySeconds: numberOf('every', 3_600),
    only: values.only?.split(','),
    heaps: values.heaps,
    say,
  })
  say(textOf(result))
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, undefined, 2)}\n`)
  if (values.page === true) {
    const page = at('../docs/endurance.md')
    writeFileSync(page, pageWith(readFileSync(page, 'utf8'), result))
    for (const [name, svg] of picturesOf(result)) writeFileSync(at(`../docs/images/${name}`), svg)
  }
  process.exitCode = result.failures === 0 ? 0 : 1
}
