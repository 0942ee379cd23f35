import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Mutation } from '../../../scripts/mutants/mutation.ts'
import { copyTree } from '../../../scripts/mutants/run/copy.ts'
import { Judging } from '../../../scripts/mutants/run/judging.ts'
import { Planting } from '../../../scripts/mutants/run/plant.ts'
import { keyOf, type Result, Results, testFilesOf } from '../../../scripts/mutants/run/results.ts'

const TREE = {
  'vitest.config.ts': `export default { test: { include: ['test/**/*.test.ts'], pool: 'forks' } }`,
  'src/limit.ts': 'export const MOST = 3\nexport const isWithin = (size: number): boolean => size <= MOST\n',
  'test/limit.test.ts': `import { expect, it } from 'vitest'
import { isWithin } from '../src/limit.ts'
it('takes three', () => expect([isWithin(3), isWithin(9)]).toEqual([true, false]))`,
  'test/broken.test.ts': `import { expect, it } from 'vitest'
it('never holds', () => expect(1).toBe(2))`,
  'test/hung.test.ts': `import { it } from 'vitest'
it('never ends', () => { for (;;); })`,
}
const LIMIT = TREE['src/limit.ts']

const row = (find: string, replace: string): Mutation => ({
  rule: 'three at most',
  file: 'src/limit.ts',
  find,
  replace,
  tests: ['test/limit.test.ts'],
})
const planted = (mutation: Mutation) => ({ mutation, tests: mutation.tests })

describe('planting mutations', () => {
  let root = ''
  beforeAll(() => {
    root = mkdtempSync(path.join(os.tmpdir(), 'extauth-tree-'))
    for (const [name, text] of Object.entries(TREE)) {
      mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
      writeFileSync(path.join(root, name), text)
    }
    symlinkSync(path.join(import.meta.dirname, '../../../node_modules'), path.join(root, 'node_modules'))
  })
  afterAll(() => rmSync(root, { recursive: true }))

  it('reports killed, surviving and unloadable mutants, and reverts each before the next', async () => {
    const planting = new Planting(root, Object.keys(TREE), 1)
    try {
      const failing = await planting.baseline(['test/limit.test.ts', 'test/broken.test.ts'], () => undefined)
      expect([...failing]).toEqual([['test/broken.test.ts', 'never holds']])
      const seen: Result[] = []
      const rows = [row('<=', '<'), row('size <= MOST', 'size < MOST + 1'), row('MOST = 3', 'MOST = 3 + missing')]
      await planting.judge([...rows, ...rows].map(planted), (_, result) => void seen.push(result))
      const verdicts = ['killed', 'survived', 'does not load']
      expect(seen.map(({ verdict }) => verdict)).toEqual([...verdicts, ...verdicts])
      expect(seen[0]?.by).toBe('test/limit.test.ts: takes three')
      expect(readFileSync(path.join(root, 'src/limit.ts'), 'utf8')).toBe(LIMIT)
    } finally {
      planting.close()
    }
  }, 120_000)

  it('ends tests that hang, and goes on with another process', async () => {
    const copy = copyTree(root, Object.keys(TREE))
    const judging = new Judging(copy.directory)
    try {
      const hung = await judging.ask({ changed: [], tests: ['test/hung.test.ts'] }, 2_000)
      expect(hung.failed).toMatchObject({ test: 'test/hung.test.ts', isLoaded: true })
      expect((await judging.ask({ changed: [], tests: ['test/limit.test.ts'] }, 120_000)).failed).toBeUndefined()
    } finally {
      judging.close()
      copy.close()
    }
    expect(existsSync(copy.directory)).toBe(false)
  }, 120_000)

  it('keeps a result while the texts of the line’s file and of its tests are the same', () => {
    const mutation = row('<=', '<')
    const before = keyOf(root, mutation)
    expect(keyOf(root, mutation)).toBe(before)
    expect(keyOf(root, { ...mutation, replace: '>' })).not.toBe(before)
    appendFileSync(path.join(root, 'test/limit.test.ts'), '\n')
    expect(keyOf(root, mutation)).not.toBe(before)
  })

  it('reads the results of a run that was cut in the middle of a line', () => {
    const file = path.join(root, 'results.jsonl')
    new Results(file).add('one', { verdict: 'survived' })
    new Results(file).add('one', { verdict: 'killed', by: 'a test' })
    appendFileSync(file, '{"key":"two","verd')
    new Results(file).add('three', { verdict: 'survived' })
    const results = new Results(file)
    expect(results.get('one')).toEqual({ verdict: 'killed', by: 'a test' })
    expect([results.get('two'), results.get('three')]).toEqual([undefined, { verdict: 'survived' }])
  })

  it('takes the tests in a folder', () => {
    expect(testFilesOf(root, { tests: ['test'] })).toEqual([
      'test/broken.test.ts',
      'test/hung.test.ts',
      'test/limit.test.ts',
    ])
  })
})
