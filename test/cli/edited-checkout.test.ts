import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeCheckoutForm } from '../../scripts/checkout/make.ts'

const root = path.join(import.meta.dirname, '../..')
const { whatIs } = createRequire(import.meta.url)('../../bin/built.cjs') as {
  readonly whatIs: (file: string) => readonly [number, number, string]
}

/** A small program with one of each kind of import and export; its first line says which way it was started. */
const SOURCES = {
  'src/main.ts': `import { basename } from 'node:path'
import * as kinds from './kinds.ts'
import { counted, Kind, renamed, type Word } from './index.ts'

const word: Word = counted()
console.log(/checkout.start/.test(new Error().stack ?? '') ? 'form' : 'sources')
console.log(word, renamed, new Kind().name, Object.keys(kinds).join(), basename(import.meta.url), import.meta.dirname)
const { late } = await1(await0())
function await0(): Promise<{ late: string }> {
  return import('./late.ts')
}
function await1(later: Promise<{ late: string }>): { late: string } {
  void later.then(({ late }) => console.log(late))
  return { late: '' }
}
console.log(\`early\${late}\`)
`,
  'src/index.ts': `export * from './kinds.ts'
export { counted } from './counted.ts'
import { other } from './kinds.ts'
export { other as renamed }
export type Word = string
`,
  'src/kinds.ts': `import fs from 'node:fs'
/** Lines above
 * what is exported. */
export class Kind {
  readonly name: string = typeof fs.readFileSync
}
const own = 'own'
export { own as other }
export const trace = (): string => new Error('traced').stack ?? ''
`,
  'src/counted.ts': `import words, { count } from 'words'
export function counted(): string {
  return words.count === count ? count() : 'another'
}
`,
  'src/late.ts': "console.log('loaded late')\nexport const late = 'late'\n",
}

let folder: string
const file = (name: string): string => path.join(folder, name)
const edit = (name: string, from: string, to: string): void => {
  const text = readFileSync(file(name), 'utf8')
  expect(text).toContain(from)
  writeFileSync(file(name), text.replace(from, to))
}
const runs = (): { lines: readonly string[]; stderr: string; status: number | null } => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [file('bin/extauth.cjs'), 'x'], { encoding: 'utf8' })
  return { lines: stdout.trim().split('\n'), stderr, status }
}

/** As scripts/build.ts does it. */
const make = async (): Promise<void> => {
  await makeCheckoutForm(folder, file('dist/checkout'), new Set(['words']))
  writeFileSync(file('dist/main.cjs'), "console.log('dist')")
  const made = [...Object.keys(SOURCES), 'package.json'].map((name) => [name, whatIs(file(name))])
  writeFileSync(file('dist/sources.json'), JSON.stringify(Object.fromEntries(made)))
}

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'extauth-edited-'))
  cpSync(path.join(root, 'bin'), file('bin'), { recursive: true })
  for (const name of ['src', 'dist']) mkdirSync(file(name))
  writeFileSync(file('package.json'), '{ "type": "module" }')
  for (const [name, text] of Object.entries(SOURCES)) writeFileSync(file(name), text)
  mkdirSync(file('node_modules'))
  for (const name of ['rolldown', '@rolldown', '@oxc-project'])
    symlinkSync(path.join(root, 'node_modules', name), file(`node_modules/${name}`))
  mkdirSync(file('node_modules/words'))
  writeFileSync(file('node_modules/words/package.json'), '{ "main": "index.js" }')
  writeFileSync(file('node_modules/words/index.js'), "exports.count = () => '3'")
  writeFileSync(file('node_modules/words/more.js'), "require('./index.js').count = () => 'more'")
  await make()
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('an edited checkout', () => {
  it('starts from what was made of its other files, and does what the sources do', () => {
    appendFileSync(file('src/late.ts'), '// edited\n')
    const { lines } = runs()
    expect(lines).toEqual([
      'form',
      `3 own function Kind,other,trace main.ts ${file('src')}`,
      'early',
      'loaded late',
      'late',
    ])
    rmSync(file('dist/checkout'), { recursive: true })
    expect(runs().lines).toEqual(['sources', ...lines.slice(1)])
  })

  it.each(Object.keys(SOURCES))('does so whichever is edited: %s', (name) => {
    appendFileSync(file(name), '// edited\n')
    expect(runs().lines).toEqual([
      'form',
      `3 own function Kind,other,trace main.ts ${file('src')}`,
      'early',
      'loaded late',
      'late',
    ])
  })

  it('loads what is not ours late, as the sources do, and Node has nothing to say about the way', () => {
    appendFileSync(file('src/late.ts'), "void import('node:os').then(({ EOL }) => console.log(EOL.length))\n")
    const { lines, stderr } = runs()
    expect([lines[0], lines.at(-1), stderr]).toEqual(['form', '1', ''])
    appendFileSync(file('src/late.ts'), "process.emitWarning('a word of its own')\n")
    expect(runs().stderr).toContain('Warning: a word of its own')
  })

  it('runs what is written now, at the first start after each edit and at the next', () => {
    edit('src/kinds.ts', "'own'", "'new'")
    expect(runs().lines[1]).toMatch(/^3 new /)
    edit('src/kinds.ts', "'new'", "'now'")
    expect(runs().lines[1]).toMatch(/^3 now /)
    expect(runs().lines[1]).toMatch(/^3 now /)
    expect(runs().lines[0]).toBe('form')
  })

  it('takes files that are new, and misses none that are no longer wanted', () => {
    writeFileSync(file('src/added.ts'), "export { deep as counted } from './deep.ts'\n")
    writeFileSync(file('src/deep.ts'), "export const deep = (): string => 'added'\n")
    edit('src/index.ts', './counted.ts', './added.ts')
    rmSync(file('src/counted.ts'))
    expect(runs().lines.slice(0, 2)).toEqual(['form', expect.stringMatching(/^added own /)])
  })

  it('keeps what was compiled, and takes it for no other text and only whole', async () => {
    edit('src/late.ts', "'late'", "'LATE'")
    expect(runs().lines[0]).toBe('form')
    edit('src/kinds.ts', "'own'", "'new'")
    await make()
    edit('src/late.ts', "'LATE'", "'late'")
    expect(runs().lines[1]).toMatch(/^3 new /)
    const [kept = ''] = globSync(file('node_modules/.cache/extauth/*/modules.js.x'))
    const whole = readFileSync(kept)
    writeFileSync(kept, whole.subarray(0, -100))
    expect(runs().lines.slice(0, 2)).toEqual(['form', expect.stringMatching(/^3 new /)])
    expect(readFileSync(kept).length).toBeGreaterThanOrEqual(whole.length)
  })

  it('names the sources in stacks, edited ones and others', () => {
    edit('src/late.ts', "'late'", 'trace()')
    edit('src/late.ts', 'console', "import { trace } from './kinds.ts'\nconsole")
    const stack = runs().lines.slice(4).join('\n')
    expect(stack).toContain(`trace (file://${file('src/kinds.ts')}:9:`)
    expect(stack).toContain(`(file://${file('src/late.ts')}:3:`)
  })
})

describe('an edited checkout runs its sources', () => {
  it.each([
    ['where one is not TypeScript', 'src/late.ts', "'late'", "'late' 'late'", /late\.ts:2/],
    [
      'where a name is missing',
      'src/kinds.ts',
      'own as other',
      'own as another',
      /does not provide an export named 'other'/,
    ],
    ['where a file is missing', 'src/index.ts', './counted.ts', './nowhere.ts', /Cannot find module .*nowhere\.ts/],
    ['where one is more than types', 'src/late.ts', "'late'", "'late'\nenum More { A }", /enum is not supported/],
  ])('%s, and Node says so', (_, name, from, to, sentence) => {
    edit(name, from, to)
    const { stderr, lines, status } = runs()
    expect(stderr).toMatch(sentence)
    expect(lines[0]).not.toBe('form')
    expect(name === 'src/late.ts' || status === 1).toBe(true)
  })

  it.each([
    ['import each other', 'src/kinds.ts', 'import fs', "import './index.ts'\nimport fs"],
    ['wait', 'src/kinds.ts', 'const own =', 'const own = await'],
    ['export what changes', 'src/kinds.ts', 'const own', 'let own'],
    ['load a bundled package late', 'src/late.ts', "'late'", "'late'\nvoid import('words')"],
    ['ask it for what is not inside', 'src/late.ts', "'late'", "'late'\nimport 'words/more.js'"],
    [
      'load what is not known before',
      'src/late.ts',
      "'late'",
      "'late'\nvoid import(late === '' ? late : './kinds.ts')",
    ],
  ])('where they %s', (_, name, from, to) => {
    appendFileSync(file('src/index.ts'), '// edited\n')
    edit(name, from, to)
    const { lines } = runs()
    expect(lines.slice(0, 2)).toEqual(['sources', expect.stringMatching(/^3 own /)])
    expect(lines.at(-1)).toBe('late')
  })

  it('where something else is edited too, and where nothing can convert them', () => {
    appendFileSync(file('src/late.ts'), '// edited\n')
    writeFileSync(file('package.json'), '{ "type": "module", "name": "edited" }')
    expect(runs().lines[0]).toBe('sources')
    writeFileSync(file('package.json'), '{ "type": "module" }')
    expect(runs().lines[0]).toBe('form')
    rmSync(file('node_modules/rolldown'))
    expect(existsSync(file('dist/checkout/start.cjs'))).toBe(true)
    expect(runs().lines[0]).toBe('sources')
  })
})
