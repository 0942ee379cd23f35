import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { misfit } from './mutants/fit.ts'
import { MUTATIONS } from './mutants/list.ts'
import type { Mutation, Verdict } from './mutants/mutation.ts'
import { mutantsPage } from './mutants/page.ts'
import { copyTree, unparsed } from './mutants/plant.ts'

// Breaks one line at a time that guards something, and fails when the tests do not notice (docs/mutants.md).
const root = path.join(import.meta.dirname, '..')
const RESULTS = path.join(root, 'node_modules/.cache/extauth-mutants.json')
const PAGE = path.join(root, 'docs/mutants.md')

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: '1/1' },
    only: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
})

const say = (text: string): void => void process.stdout.write(`${text}\n`)
const nameOf = ({ file, rule }: Mutation): string => `${file}: ${rule}`
const keyOf = ({ file, find, replace }: Mutation): string => JSON.stringify([file, find, replace])

process.exitCode = await main()

async function main(): Promise<number> {
  const misfits = MUTATIONS.flatMap((mutation) => {
    const why = misfit(root, mutation) ?? unparsed(root, mutation)
    return why === undefined ? [] : [`${nameOf(mutation)}: ${why}`]
  })
  for (const line of misfits) say(`does not fit  ${line}`)
  if (misfits.length > 0) return 1
  say(`${MUTATIONS.length} mutations, all of them fit`)
  if (values.list) return 0
  if (values.report) return report()
  return plant(chosen())
}

function chosen(): readonly Mutation[] {
  const [part = 1, parts = 1] = values.part.split('/').map(Number)
  return MUTATIONS.filter((mutation, index) => index % parts === part - 1 && nameOf(mutation).includes(values.only))
}

async function plant(mutations: readonly Mutation[]): Promise<number> {
  const copy = copyTree(root)
  process.once('exit', () => copy.close())
  let survivors = 0
  const all = [...new Set(mutations.flatMap(({ tests }) => tests))]
  // Once more on a busy machine, before it is believed.
  const broken = (await copy.test(all)) && (await copy.test(all))
  if (broken !== undefined) {
    say(`the tests fail before anything is broken:\n${broken}`)
    return 1
  }
  for (const mutation of mutations) {
    const verdict = await copy.judge(mutation)
    if (verdict === 'survived') survivors += 1
    say(`${verdict.padEnd(8)}  ${nameOf(mutation)}`)
    // Another part may run beside this one.
    writeResults({ ...readResults(), [keyOf(mutation)]: verdict })
  }
  say(`${mutations.length} planted, ${mutations.length - survivors} noticed, ${survivors} survived`)
  return survivors === 0 ? 0 : 1
}

function report(): number {
  const results = readResults()
  const open = MUTATIONS.filter((mutation) => results[keyOf(mutation)] !== 'killed')
  for (const mutation of open) say(`${results[keyOf(mutation)] ?? 'not run'}  ${nameOf(mutation)}`)
  if (open.length > 0) return 1
  writeFileSync(PAGE, mutantsPage(MUTATIONS, new Date().toISOString().slice(0, 10)))
  say('docs/mutants.md written')
  return 0
}

function readResults(): Record<string, Verdict> {
  try {
    return JSON.parse(readFileSync(RESULTS, 'utf8')) as Record<string, Verdict>
  } catch {
    return {}
  }
}

function writeResults(results: Record<string, Verdict>): void {
  mkdirSync(path.dirname(RESULTS), { recursive: true })
  writeFileSync(RESULTS, JSON.stringify(results))
}
