import { expect, test } from 'vitest'
import { documentedChecks, readGitopsRecord, WANTED } from '../../support/deploy/gitops-record.ts'

test('the documented checks of Argo CD and Flux are those that were tried, and each state is what it should be', () => {
  const { checks, states } = readGitopsRecord()
  // Else: npm run test:cluster -- --install --record gitops
  expect(checks).toBe(documentedChecks().hash)
  expect(Object.fromEntries(Object.entries(states).map(([name, { verdict }]) => [name, verdict]))).toEqual(WANTED)
})

test('both kinds have the same checks, and both tools the same reasons that waiting does not mend', () => {
  const { lua, exprs } = documentedChecks()
  const [first, second] = exprs
  expect(exprs.map(({ kind }) => kind)).toEqual(['MCPExternalAuthConfig', 'MCPRemoteProxy'])
  expect({ ...first, kind: '' }).toEqual({ ...second, kind: '' })
  const inLua = [...lua.matchAll(/(\w+) = true/g)].map(([, reason]) => reason)
  const inCel = [...(first?.['failed'] ?? '').matchAll(/'(\w+)'/g)]
    .map(([, reason]) => reason)
    .filter((reason) => reason !== 'Ready' && reason !== 'False')
  expect(inLua.length).toBeGreaterThan(5)
  expect(inCel).toEqual(inLua)
})
