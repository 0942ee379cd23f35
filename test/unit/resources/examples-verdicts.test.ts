import { describe, expect, test } from 'vitest'
import { document } from '../../support/load/publish/validators.ts'
import { openRecord } from '../../support/load/publish/verdicts/recorded.ts'
import { EMBEDDED_EXAMPLES } from '../../support/resources/examples-embedded.ts'
import { OUTGOING_EXAMPLES } from '../../support/resources/examples-outgoing.ts'

const verdictOf = openRecord()

// The recorded verdicts of an API server (CRD with CEL) about the examples of examples.test.ts.
describe('MCPExternalAuthConfig in a cluster', () => {
  const examples = [...OUTGOING_EXAMPLES, ...EMBEDDED_EXAMPLES]
  test.each(examples.map((example) => [example.name, example]))('%s', (_name, { spec, problem, unseenBy = [] }) => {
    const value = JSON.parse(JSON.stringify(document(spec))) as { [name: string]: unknown }
    expect(verdictOf('MCPExternalAuthConfig', value)).toBe(problem === undefined || unseenBy.includes('crd'))
  })
})
