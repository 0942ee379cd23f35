import { expect, test } from 'vitest'
import { parseDocuments } from '../../../../src/load/index.ts'
import { workload } from '../../../support/load/documents/build.ts'

test('a reference whose target may be in a text that cannot be read says so', () => {
  const referrer = workload('MCPRemoteProxy', 'w', {
    remoteUrl: 'https://a',
    externalAuthConfigRef: { name: 'token' },
  })
  const text = `${JSON.stringify(referrer)}\n---\nmetadata: [\n`
  const [broken, nowhere] = parseDocuments([{ path: 'a.yaml', text }]).problems.toSorted((a, b) => b.line - a.line)
  expect(broken?.kind).toBe('')
  expect(nowhere?.message).toMatch(
    /^there is no MCPExternalAuthConfig .*; it may be in the unreadable document at a\.yaml:\d$/,
  )
})
