import type { RuleDecision } from '../../core/index.ts'
import { hasRoles, type ResolvedRoute } from '../../resources/index.ts'
import { isSessionNameSteady, type RecordedDecision } from './decisions-file.ts'
import { callerOfClaimsText } from './explain-input.ts'
import { decideFor } from './explain-report.ts'
import { attributeLines, noRoles } from './explain-text.ts'
import { decideRules, viewOf } from './request-rules.ts'

/** What a caller gets on a route. */
interface Outcome {
  /** ARN, or `none`. */
  readonly role: string
  /** Why there is none. */
  readonly reason: string | undefined
  /** Undefined also where it can't be told. */
  readonly sessionName: string | undefined
  /** Tags, source identity, policies and external id, a line for each. */
  readonly session: readonly string[]
  /** What the rules say of the request, as words; undefined where there was none. */
  readonly rules: string | undefined
}

/** A caller who would get something else. */
export interface RoleChange {
  readonly route: string
  readonly issuer: string
  readonly subject: string
  readonly requestId: string
  readonly before: Outcome
  readonly after: Outcome
}

export interface Comparison {
  /** Callers that were compared, once per route. */
  readonly callers: number
  readonly withoutClaims: number
  readonly changes: readonly RoleChange[]
}

/**
 * Decides again for recorded callers: by `routes` if they are given, else as it was recorded, and by `others`. A caller
 * whose role, refusal, session name, tags, source identity, policies or external id differ is a change. Throws `config_error` for a matcher that does not compile.
 */
export function compare(
  records: readonly RecordedDecision[],
  routes: readonly ResolvedRoute[] | undefined,
  others: readonly ResolvedRoute[],
): readonly RoleChange[] {
  return records.flatMap((record) => {
    const before = routes === undefined ? recorded(record) : decideOn(routes, record)
    const after = decideOn(others, record)
    const isSame =
      before.role === after.role &&
      before.reason === after.reason &&
      before.rules === after.rules &&
      isSameName(before, after) &&
      onlyIn(before, after).length + onlyIn(after, before).length === 0
    if (isSame) return []
    const { claims, route, requestId } = record
    return [{ route, issuer: textOf(claims['iss']), subject: textOf(claims['sub']), requestId, before, after }]
  })
}

/** The comparison for people. */
export function renderComparison({ callers, withoutClaims, changes }: Comparison): string {
  const lines = changes.flatMap(({ route, issuer, subject, before, after }) => [
    `${route}  ${subject || '(no subject)'} of ${issuer || '(no issuer)'}`,
    `    before  ${outcomeText(before)}`,
    ...onlyIn(before, after).map((line) => `            ${line}`),
    `    after   ${outcomeText(after)}`,
    ...onlyIn(after, before).map((line) => `            ${line}`),
  ])
  const left = withoutClaims === 0 ? '' : `; ${withoutClaims} recorded without claims and left out`
  lines.push(`${changes.length} of ${callers} ${callers === 1 ? 'caller' : 'callers'} would get something else${left}`)
  return `${lines.join('\n')}\n`
}

const outcomeText = ({ role, reason, sessionName, rules }: Outcome): string =>
  `${rules === undefined ? '' : `${rules}; `}${role}${reason === undefined ? '' : ` (${reason})`}${sessionName === undefined ? '' : ` as ${sessionName}`}`

/** What of the one's session the other does not have. */
const onlyIn = ({ session }: Outcome, other: Outcome): readonly string[] =>
  session.filter((line) => !other.session.includes(line))

const none = (reason: string, rules?: string): Outcome => ({
  role: 'none',
  reason,
  sessionName: undefined,
  session: [],
  rules,
})

function recorded(record: RecordedDecision): Outcome {
  const rules = record.rules && wordsOf(record.rules)
  if (record.decision === undefined) return none(NO_ROLE_DECIDED, rules)
  const { choice, refusal, session } = record.decision
  if (refusal !== undefined) return none(refusal, rules)
  const sessionName = isSessionNameSteady(record) ? session?.name : undefined
  return {
    role: choice.roleArn ?? 'none',
    reason: undefined,
    sessionName,
    session: attributeLines(choice.attributes),
    rules,
  }
}

function decideOn(routes: readonly ResolvedRoute[], record: RecordedDecision): Outcome {
  const route = routes.find(({ name }) => name === record.route)
  if (route === undefined) return none('there is no such route')
  const { auth, onMatcherError } = route
  const rules = rulesOn(route, record)
  if (!hasRoles(auth) || record.decision === undefined)
    return none(record.decision === undefined ? NO_ROLE_DECIDED : noRoles(auth.type), rules)
  const format = record.decision.refusal === 'opaque_token_unsupported' ? 'opaque' : 'jwt'
  const caller = callerOfClaimsText(record.claimsText, 'a decision', format)
  const { choice, refusal, session } = decideFor(auth, onMatcherError, caller, { all: false })
  if (refusal !== undefined) return none(refusal, rules)
  const sessionName = isSessionNameSteady(record) ? session?.name : undefined
  return {
    role: choice.roleArn ?? 'none',
    reason: undefined,
    sessionName,
    session: attributeLines(choice.attributes),
    rules,
  }
}

/** No role was chosen for the request: its route has none, or it was not allowed. */
const NO_ROLE_DECIDED = 'no role was chosen'

function rulesOn(route: ResolvedRoute, { mcp, claims, rules }: RecordedDecision): string | undefined {
  if (mcp === undefined) return undefined
  // What was recorded of these is not enough to decide again.
  const isPart = mcp.args === undefined || mcp.method === 'subscriptions/listen' || mcp.method.startsWith('tasks/')
  if (isPart) return rules && wordsOf(rules)
  const decision = decideRules(route, viewOf(mcp), claims, { all: false })
  return wordsOf(decision ?? { allowed: true, missingScopes: [] })
}

function wordsOf({
  allowed,
  rule,
  missingScopes,
}: Pick<RuleDecision, 'allowed' | 'missingScopes'> & { rule?: string | undefined }) {
  const scopes = missingScopes.length === 0 ? '' : `, without ${missingScopes.join(' ')}`
  return `${allowed ? 'allowed' : 'not allowed'} by ${rule === undefined ? 'default' : JSON.stringify(rule)}${scopes}`
}

/** A name that hangs on the token itself can't be compared. */
const isSameName = (before: Outcome, after: Outcome): boolean =>
  before.sessionName === undefined || after.sessionName === undefined || before.sessionName === after.sessionName

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
