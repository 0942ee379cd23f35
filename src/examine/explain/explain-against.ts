import type { RuleDecision } from '../../core/index.ts'
import { hasRoles, type ResolvedRoute } from '../../resources/index.ts'
import { isSessionNameSteady, type RecordedDecision } from './decisions-file.ts'
import { callerOfClaimsText } from './explain-input.ts'
import { decideFor } from './explain-report.ts'
import { attributeLines, noRoles } from './explain-text.ts'
import { credentialFor, decideRules, viewOf } from './request-rules.ts'

/** The result for a caller on a route. */
interface Outcome {
  /** ARN, or `none`. */
  readonly role: string
  /** Why there is no role. */
  readonly reason: string | undefined
  /** Undefined if unknown, too. */
  readonly sessionName: string | undefined
  /** Tags, source identity, policies and external ID, one line each. */
  readonly session: readonly string[]
  /** Result of the rules as text; undefined without a request. */
  readonly rules: string | undefined
}

/** A caller whose result changes. */
export interface RoleChange {
  readonly route: string
  readonly issuer: string
  readonly subject: string
  readonly requestId: string
  readonly before: Outcome
  readonly after: Outcome
}

export interface Comparison {
  /** Compared callers, once per route. */
  readonly callers: number
  readonly withoutClaims: number
  readonly changes: readonly RoleChange[]
}

/**
 * Evaluates recorded callers by `routes` (by the recorded decision if undefined) and by `others`. A change is a
 * different role, refusal, session name, tag, source identity, policy or external ID. Throws `config_error` for an
 * invalid matcher.
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

/** Renders the comparison as text. */
export function renderComparison({ callers, withoutClaims, changes }: Comparison): string {
  const lines = changes.flatMap(({ route, issuer, subject, before, after }) => [
    `${route}  ${subject || '(no subject)'} of ${issuer || '(no issuer)'}`,
    `    before  ${outcomeText(before)}`,
    ...onlyIn(before, after).map((line) => `            ${line}`),
    `    after   ${outcomeText(after)}`,
    ...onlyIn(after, before).map((line) => `            ${line}`),
  ])
  const left = withoutClaims === 0 ? '' : `; ${withoutClaims} skipped: recorded without claims`
  lines.push(`${changes.length} of ${callers} ${callers === 1 ? 'caller' : 'callers'} would change${left}`)
  return `${lines.join('\n')}\n`
}

const outcomeText = ({ role, reason, sessionName, rules }: Outcome): string =>
  `${rules === undefined ? '' : `${rules}; `}${role}${reason === undefined ? '' : ` (${reason})`}${sessionName === undefined ? '' : ` as ${sessionName}`}`

/** Lines of a session that the other one lacks. */
const onlyIn = ({ session }: Outcome, other: Outcome): readonly string[] =>
  session.filter((line) => !other.session.includes(line))

const none = (reason: string, rules?: string): Outcome => ({
  role: 'none',
  reason,
  sessionName: undefined,
  session: [],
  rules,
})

function outcomeOf(
  { choice, refusal, session }: NonNullable<RecordedDecision['decision']> | ReturnType<typeof decideFor>,
  record: RecordedDecision,
  rules: string | undefined,
): Outcome {
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

function recorded(record: RecordedDecision): Outcome {
  const rules = record.rules && textOfRules(record.rules)
  if (record.decision === undefined) return none(NO_ROLE_DECIDED, rules)
  return outcomeOf(record.decision, record, rules)
}

function decideOn(routes: readonly ResolvedRoute[], record: RecordedDecision): Outcome {
  const route = routes.find(({ name }) => name === record.route)
  if (route === undefined) return none('no such route')
  const { onMatcherError } = route
  const rules = rulesOn(route, record)
  const { auth } = credentialFor(route, record.mcp && viewOf(record.mcp), record.claims)
  if (!hasRoles(auth) || record.decision === undefined)
    return none(record.decision === undefined ? NO_ROLE_DECIDED : noRoles(auth.type), rules)
  const format = record.decision.refusal === 'opaque_token_unsupported' ? 'opaque' : 'jwt'
  const caller = callerOfClaimsText(record.claimsText, 'a decision', format)
  const decision = decideFor(auth, onMatcherError, caller, {
    all: false,
    request: record.mcp && { mcp: viewOf(record.mcp).mcp, route: route.name },
  })
  return outcomeOf(decision, record, rules)
}

/** The route has no roles, or the request was not allowed. */
const NO_ROLE_DECIDED = 'no role was chosen'

function rulesOn(route: ResolvedRoute, { mcp, claims, rules }: RecordedDecision): string | undefined {
  if (mcp === undefined) return undefined
  // These are recorded without the fields that a decision needs.
  const isPart = mcp.args === undefined || mcp.method === 'subscriptions/listen' || mcp.method.startsWith('tasks/')
  if (isPart) return rules && textOfRules(rules)
  const decision = decideRules(route, viewOf(mcp), claims, { all: false })
  return textOfRules(decision ?? { allowed: true, missingScopes: [] })
}

function textOfRules({
  allowed,
  rule,
  missingScopes,
}: Pick<RuleDecision, 'allowed' | 'missingScopes'> & { rule?: string | undefined }) {
  const scopes = missingScopes.length === 0 ? '' : `, without ${missingScopes.join(' ')}`
  return `${allowed ? 'allowed' : 'not allowed'} by ${rule === undefined ? 'default' : JSON.stringify(rule)}${scopes}`
}

/** Names derived from the token cannot be compared. */
const isSameName = (before: Outcome, after: Outcome): boolean =>
  before.sessionName === undefined || after.sessionName === undefined || before.sessionName === after.sessionName

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
