import { describe, expect, test } from 'vitest'
import { EMBEDDED_EXAMPLES } from '../../support/resources/examples-embedded.ts'
import { OUTGOING_EXAMPLES } from '../../support/resources/examples-outgoing.ts'
import { document, jsonSchemaAccepts, problemsOf } from '../../support/load/publish/validators.ts'

// Three readers of the schema must agree: here files and editors (JSON Schema); the cluster is in examples-verdicts.test.ts.
describe.each([
  ['outgoing', OUTGOING_EXAMPLES],
  ['embedded authorization server', EMBEDDED_EXAMPLES],
] as const)('MCPExternalAuthConfig: %s', (_group, examples) => {
  test.each(examples.map((example) => [example.problem === undefined ? 'accepts' : 'refuses', example.name, example]))(
    '%s %s',
    (_verdict, _name, { spec, problem, unseenBy = [] }) => {
      const value = JSON.parse(JSON.stringify(document(spec))) as { [name: string]: unknown }
      const problems = problemsOf(value)
      if (problem === undefined) expect(problems).toEqual([])
      else expect(problems.join('\n')).toContain(problem)
      expect(jsonSchemaAccepts('MCPExternalAuthConfig', value)).toBe(
        problem === undefined || unseenBy.includes('json schema'),
      )
    },
  )
})
