import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { judgedObjects } from '../support/load/publish/verdicts/objects.ts'
import { RECORD_PATH, recordOf, recordOfSpellings, SPELLINGS_PATH } from '../support/load/publish/verdicts/recorded.ts'
import { SPELLINGS } from '../support/resources/verdicts/spellings.ts'
import { judge } from './support/crdcheck.ts'
import { readByKubectl } from './support/kubectl-reads.ts'

test('the verdicts that npm test replays are those of an API server', () => {
  const objects = judgedObjects()
  const record = recordOf(
    objects,
    judge(objects).map(({ ok }) => ok),
  )
  expect(recorded(RECORD_PATH, record)).toEqual(record)
}, 300_000)

test('texts mean to kubectl what is recorded', () => {
  const record = recordOfSpellings(readByKubectl(SPELLINGS))
  expect(recorded(SPELLINGS_PATH, record)).toEqual(record)
}, 300_000)

/** The content of a file; `npm run test:cluster -- --record` renews it. */
function recorded(file: string, record: { readonly [name: string]: unknown }): unknown {
  const lines = Object.entries(record).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  if (process.env['EXTAUTH_RECORD'] === 'true') writeFileSync(file, `{\n${lines.join(',\n')}\n}\n`)
  return JSON.parse(readFileSync(file, 'utf8'))
}
