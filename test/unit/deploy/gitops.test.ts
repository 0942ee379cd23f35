import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CRD_KINDS } from '../../../src/load/publish/index.ts'
import { documentedChecks, readGitopsRecord, WANTED } from '../../support/deploy/gitops-record.ts'

test('the documented checks of Argo CD and Flux are those that were tried, and each state is what it should be', () => {
  const { checks, states } = readGitopsRecord()
  // Else: npm run test:cluster -- --install --record gitops
  expect(checks).toBe(documentedChecks().hash)
  expect(Object.fromEntries(Object.entries(states).map(([name, { verdict }]) => [name, verdict]))).toEqual(WANTED)
})

test('all kinds have the same checks, and both tools the same permanent failure reasons', () => {
  const { lua, exprs } = documentedChecks()
  const [first] = exprs
  expect(new Set(exprs.map(({ kind }) => kind))).toEqual(new Set(CRD_KINDS))
  for (const one of exprs) expect({ ...one, kind: '' }).toEqual({ ...first, kind: '' })
  for (const kind of CRD_KINDS)
    expect(readFileSync('docs/gitops.md', 'utf8').split('```lua')[0]).toContain(`\`${kind}\``)
  const inLua = [...lua.matchAll(/(\w+) = true/g)].map(([, reason]) => reason)
  const inCel = [...(first?.['failed'] ?? '').matchAll(/'(\w+)'/g)]
    .map(([, reason]) => reason)
    .filter((reason) => reason !== 'Ready' && reason !== 'False')
  expect(inLua.length).toBeGreaterThan(5)
  expect(inCel).toEqual(inLua)
})
