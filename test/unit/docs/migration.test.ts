import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parseDocuments, resolveProxy } from '../../../src/load/index.ts'

const PAGE = readFileSync(path.join(import.meta.dirname, '../../../docs/migration.md'), 'utf8')
const EXAMPLES = [...PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text)

test.each(EXAMPLES.map((text, index) => [index, text] as const))('example %i runs as it is', (_index, text) => {
  const { config, problems = [] } = resolveProxy(parseDocuments([{ path: 'a.yaml', text }]))
  expect(problems).toEqual([])
  expect(config?.routes).toHaveLength(1)
})

test('there is an example of each of the other programs', () => {
  expect(EXAMPLES).toHaveLength(2)
})
