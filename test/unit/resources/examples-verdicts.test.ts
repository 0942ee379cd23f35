import { describe, expect, test } from 'vitest'
import { document } from '../../support/load/publish/judges.ts'
import { openRecord } from '../../support/load/publish/verdicts/recorded.ts'
import { EMBEDDED_EXAMPLES } from '../../support/resources/examples-embedded.ts'
import { OUTGOING_EXAMPLES } from '../../support/resources/examples-outgoing.ts'

const verdictOf = openRecord()

// What a cluster (CRD with CEL; as an API server has judged) says to what files and editors take in examples.test.ts.
describe('MCPExternalAuthConfig in a cluster', () => {
  const examples = [...OUTGOING_EXAMPLES, ...EMBEDDED_EXAMPLES]
  test.each(examples.map((example) => [example.name, example]))('%s', (_name, { spec, problem, unseenBy = [] }) => {
    const value = JSON.parse(JSON.stringify(document(spec))) as { [name: string]: unknown }
    expect(verdictOf('MCPExternalAuthConfig', value)).toBe(problem === undefined || unseenBy.includes('crd'))
  })
})
