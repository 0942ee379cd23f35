import { stringify } from 'yaml'
import { DEFAULT_API_GROUP, WRITTEN_YAML } from '../../load/index.ts'
import { ROLE_REFUSALS } from '../../resources/index.ts'
import { isSessionNameSteady, type RecordedDecision } from '../explain/decisions-file.ts'
import { roleOf } from './evaluate.ts'

const HEAD = `# Made by extauth test --from-decisions from requests that were recorded.
# It holds claims of real callers, session names and all: look through it before it is kept or shared.
`

/** Renders a RoleTest document (YAML) that expects the recorded result for each caller. */
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
  // Quoted, because YAML 1.1 reads some strings as other types.
  return HEAD + stringify(document, { ...WRITTEN_YAML, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' })
}

function caseOf(record: RecordedDecision, index: number): object {
  const { route, decision, claimsText, mcp, rules } = record
  if (mcp !== undefined && rules !== undefined) return ruleCase(record, index)
  if (decision === undefined)
    return { name: `recorded ${index + 1}`, route, claims: JSON.parse(claimsText) as unknown, expect: { role: 'none' } }
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

/** A case about the rules of the route; what has no name there is left out. */
function ruleCase({ route, claimsText, mcp, rules }: RecordedDecision, index: number): object {
  const { method, name, uri, args = {}, annotations = {} } = mcp ?? { method: '', name: '', uri: '' }
  const { allowed = false, rule = 'default' } = rules ?? {}
  const about = name === '' ? uri : name
  return {
    name: `recorded ${index + 1}: ${allowed ? 'allowed' : 'not allowed'} on ${route}`,
    route,
    claims: JSON.parse(claimsText) as unknown,
    mcp: {
      method,
      ...(about === '' ? {} : name === '' ? { uri } : { name }),
      ...(Object.keys(args).length === 0 ? {} : { args }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    expect: { allowed, rule },
  }
}
