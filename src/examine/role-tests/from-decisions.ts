import { stringify } from 'yaml'
import { DEFAULT_API_GROUP, WRITTEN_YAML } from '../../load/index.ts'
import { ROLE_REFUSALS } from '../../resources/index.ts'
import { isSessionNameSteady, type RecordedDecision } from '../explain/decisions-file.ts'
import { roleOf } from './judge.ts'

const HEAD = `# Made by extauth test --from-decisions from requests that were recorded.
# It holds claims of real callers, session names and all: look through it before it is kept or shared.
`

/** A RoleTest document, as YAML, that expects of each recorded caller what it got. */
export function renderRecordedCases(
  records: readonly RecordedDecision[],
  apiGroup: string = DEFAULT_API_GROUP,
): string {
  const document = {
    apiVersion: `${apiGroup}/v1alpha1`,
    kind: 'RoleTest',
    metadata: { name: 'recorded' },
    spec: { cases: records.map(caseOf) },
  }
  // In quotes, because a claim may be a text that YAML 1.1 reads as something else.
  return HEAD + stringify(document, { ...WRITTEN_YAML, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' })
}

function caseOf(record: RecordedDecision, index: number): object {
  const { route, decision, claimsText } = record
  const reason = ROLE_REFUSALS.find((known) => known === decision.refusal)
  const role = roleOf({ choice: decision.choice, refusal: reason })
  const sessionName = reason === undefined && isSessionNameSteady(record) ? decision.session?.name : undefined
  return {
    name: `recorded ${index + 1}: ${reason ?? role.replace(/^.*role\//, '')} on ${route}`,
    route,
    claims: JSON.parse(claimsText) as unknown,
    ...(reason === 'opaque_token_unsupported' ? { format: 'opaque' } : {}),
    expect: {
      role,
      ...(reason === undefined ? {} : { reason }),
      ...(sessionName === undefined ? {} : { sessionName }),
    },
  }
}
