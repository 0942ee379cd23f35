import { describe, expect, test } from 'vitest'
import { document } from '../load/publish/judges.ts'
import { openRecord } from '../load/publish/verdicts/recorded.ts'
import { EMBEDDED_EXAMPLES } from './examples-embedded.ts'
import { OUTGOING_EXAMPLES } from './examples-outgoing.ts'

const verdictOf = openRecord()

// What a cluster (CRD with CEL; as an API server has judged) says to what files and editors take in examples.test.ts.
describe('MCPExternalAuthConfig in a cluster', () => {
  const examples = [...OUTGOING_EXAMPLES, ...EMBEDDED_EXAMPLES]
  test.each(examples.map((example) => [example.name, example]))('%s', (_name, { spec, problem, unseenBy = [] }) => {
    const value = JSON.parse(JSON.stringify(document(spec))) as { [name: string]: unknown }
    expect(verdictOf('MCPExternalAuthConfig', value)).toBe(problem === undefined || unseenBy.includes('crd'))
  })
})
