import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { COMMANDS } from '../../../src/cli/commands/command-table.ts'
import { specsOf } from '../../../src/cli/command.ts'
import { environmentName } from '../../../src/cli/options/options.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8')
const PAGES = globSync(['README.md', 'docs/*.md', 'config/**/*.md', 'charts/**/*.md'], { cwd: ROOT })

/** Options of each command, those of its subcommands included. */
const options = new Map<string, ReadonlySet<string>>()
beforeAll(async () => {
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const specs = await specsOf(entry)
    options.set(name, new Set(['help', ...specs.flatMap((spec) => Object.keys(spec.options))]))
  }
})

interface Call {
  readonly text: string
  readonly command: string
  readonly options: readonly string[]
}

/** The calls of `extauth` in code of a page, one per line. */
function callsOf(page: string): Call[] {
  const source = read(page).replaceAll(/\\\n\s*/g, ' ')
  const code = [...source.matchAll(/```(?:sh|text)\n(.*?)```|`(extauth [^`\n]+)`/gs)].map(
    ([, block, span]) => block ?? span,
  )
  const matches = code.flatMap((part = '') =>
    Array.from(part.matchAll(/(?<![-\w]|-c )extauth (?:-- )?([a-z]+)((?: [^|;&\n]*)?)/g)),
  )
  return matches.map(([text = '', command = '', rest = '']) => {
    const own = rest.replaceAll(/"[^"]*"|'[^']*'/g, '').replace(/ #.*/, '')
    return { text, command, options: Array.from(own.matchAll(/ --([a-z][a-z-]*)/g), ([, name = '']) => name) }
  })
}

it.each(PAGES)('%s calls commands and options that exist', (page) => {
  const wrong = callsOf(page).filter(
    (call) => !options.has(call.command) || call.options.some((name) => options.get(call.command)?.has(name) !== true),
  )
  expect(wrong.map(({ text }) => text)).toEqual([])
})

it('finds the calls of pages', () => {
  expect(PAGES.flatMap(callsOf).length).toBeGreaterThan(100)
})

it('docs/environment.md lists the variables that sources read, apart from those of options', () => {
  const page = read('docs/environment.md')
  const ofOptions = new Set([...options.values()].flatMap((names) => [...names].map(environmentName)))
  const names = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [...read(file).matchAll(/['".]((?:AWS|AZURE|OTEL|XDG|NODE|KUBERNETES)_[A-Z_]*[A-Z])\b/g)].map(
      ([, name = '']) => name,
    ),
  )
  expect(names.length).toBeGreaterThan(20)
  const families = ['OTEL_EXPORTER_OTLP_', 'OTEL_TRACES_', 'OTEL_BSP_']
  const missing = new Set(
    names.filter(
      (name) =>
        !page.includes(`\`${name}\``) && !ofOptions.has(name) && !families.some((family) => name.startsWith(family)),
    ),
  )
  expect([...missing]).toEqual([])
})
