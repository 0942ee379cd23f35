import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { misfit } from './mutants/fit.ts'
import { MUTATIONS } from './mutants/list.ts'
import type { Mutation } from './mutants/mutation.ts'
import { filesOf } from './mutants/run/copy.ts'
import { unparsed } from './mutants/run/parsed.ts'
import { Planting } from './mutants/run/plant.ts'
import { keyOf, Results, testFilesOf } from './mutants/run/results.ts'

const HELP = `npm run mutants -- [--jobs N] [--only TEXTS] [--since COMMIT] [--resume] [--list] [--help]

Breaks one line at a time that guards something, in copies of the tree, and runs the tests that are expected to notice; the
checkout itself is not written to. First these tests run unbroken. Exit code 1 when a mutation survives, when a test file does
not load with it, when its line is no longer in the code exactly once, or when its tests fail unbroken.

  --jobs N        How many copies at a time, each with its own process that runs tests. Default 2.
  --only TEXTS    Only mutations with one of these, separated by commas, in their file, their rule or a test of theirs.
  --since COMMIT  Only mutations whose file or tests differ from those of a commit.
  --resume        Only what was not noticed yet: goes on with a run that was cut, or repeats what failed. A result counts while
                  the texts of the line's file and of its tests are the same. Without it all that is chosen runs.
  --list          Runs nothing: says only how many mutations there are, and which do not fit.
`
const root = path.join(import.meta.dirname, '..')
const RESULTS = path.join(root, 'node_modules/.cache/extauth-mutants.jsonl')

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    since: { type: 'string' },
    resume: { type: 'boolean' },
    list: { type: 'boolean' },
    help: { type: 'boolean' },
  },
})

interface Planted {
  readonly mutation: Mutation
  readonly tests: readonly string[]
  readonly key: string
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)
const nameOf = ({ file, rule }: Mutation): string => `${file}: ${rule}`

if (values.help === true) say(HELP)
else process.exitCode = await main()

async function main(): Promise<number> {
  const jobs = Number(values.jobs)
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > 64)
    throw new Error(`--jobs ${values.jobs} is no number from 1 to 64`)
  if (reports((mutation) => misfit(root, mutation), MUTATIONS)) return 1
  say(`${MUTATIONS.length} mutations, all of them fit`)
  const wanted = choose()
  if (reports((mutation) => unparsed(root, mutation), wanted)) return 1
  if (values.list === true) return 0
  const results = new Results(RESULTS)
  const chosen = wanted.map((mutation) => ({
    mutation,
    tests: testFilesOf(root, mutation),
    key: keyOf(root, mutation),
  }))
  if (values.resume !== true) return run(chosen, results, jobs)
  return run(
    chosen.filter(({ key }) => results.get(key)?.verdict !== 'killed'),
    results,
    jobs,
  )
}

/** Prints mutations that do not fit, and returns whether there are any. */
function reports(whyNot: (mutation: Mutation) => string | undefined, mutations: readonly Mutation[]): boolean {
  const misfits = mutations.flatMap((mutation) => {
    const why = whyNot(mutation)
    return why === undefined ? [] : [`${nameOf(mutation)}: ${why}`]
  })
  for (const line of misfits) say(`does not fit  ${line}`)
  return misfits.length > 0
}

function choose(): Mutation[] {
  const { only, since } = values
  const changed = since === undefined ? undefined : changedSince(since)
  return MUTATIONS.filter((mutation) => {
    const texts = [nameOf(mutation), ...mutation.tests]
    if (!only.split(',').some((wanted) => texts.some((text) => text.includes(wanted)))) return false
    return changed === undefined || [mutation.file, ...testFilesOf(root, mutation)].some((file) => changed.has(file))
  })
}

function changedSince(commit: string): Set<string> {
  const listed = execFileSync('git', ['diff', '--name-only', '-z', '--end-of-options', commit], { cwd: root })
  return new Set(listed.toString('utf8').split('\0'))
}

async function run(planted: readonly Planted[], results: Results, jobs: number): Promise<number> {
  const planting = new Planting(root, filesOf(root), Math.min(jobs, planted.length))
  process.once('exit', () => planting.close())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  try {
    return await plant(planted, planting, results)
  } finally {
    planting.close()
  }
}

async function plant(planted: readonly Planted[], planting: Planting, results: Results): Promise<number> {
  const tests = [...new Set(planted.flatMap((one) => one.tests))]
  const failing = await planting.baseline(tests, (done) => {
    if (done % 25 === 0 || done === tests.length) say(`${done} of ${tests.length} test files ran unbroken`)
  })
  for (const [test, name] of failing) say(`fails unbroken  ${test}: ${name}`)
  const usable = planted.filter((one) => !one.tests.some((test) => failing.has(test)))
  const open = await judge(usable, planting, results)
  say(`${usable.length} planted, ${usable.length - open} noticed, ${open} not`)
  if (failing.size > 0) say(`${planted.length - usable.length} not planted: their tests fail unbroken`)
  return open === 0 && failing.size === 0 ? 0 : 1
}

/** Started programs come last: the tests that take longest. Returns how many were not noticed. */
async function judge(planted: readonly Planted[], planting: Planting, results: Results): Promise<number> {
  const costs = new Map(planted.map((one) => [one, planting.costOf(one.tests)]))
  const costOf = (one: Planted): number => costs.get(one) ?? 0
  const startedMs = performance.now()
  let restMs = planted.reduce((sum, one) => sum + costOf(one), 0)
  const wholeMs = restMs
  let done = 0
  let open = 0
  await planting.judge(
    planted.toSorted((a, b) => costOf(a) - costOf(b)),
    (one, result) => {
      results.add(one.key, result)
      done += 1
      restMs -= costOf(one)
      if (result.verdict !== 'killed') open += 1
      const tookMs = performance.now() - startedMs
      const leftMinutes = Math.ceil((tookMs * restMs) / Math.max(1, wholeMs - restMs) / 60_000)
      const by = result.by === undefined ? '' : `  (${result.by})`
      say(`${done}/${planted.length}, ${leftMinutes} min left  ${result.verdict}  ${nameOf(one.mutation)}${by}`)
    },
  )
  return open
}
