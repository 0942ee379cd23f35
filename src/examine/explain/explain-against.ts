import { hasRoles, type ResolvedRoute } from '../../resources/index.ts'
import { isSessionNameSteady, type RecordedDecision } from './decisions-file.ts'
import { callerOfClaimsText } from './explain-input.ts'
import { decideFor } from './explain-report.ts'

/** What a caller gets on a route. */
interface Outcome {
  /** ARN, or `none`. */
  readonly role: string
  /** Why there is none. */
  readonly reason: string | undefined
  /** Undefined also where it can't be told. */
  readonly sessionName: string | undefined
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
 * whose role, refusal or session name differs is a change. Throws `config_error` for a matcher that does not compile.
 */
export function compare(
  records: readonly RecordedDecision[],
  routes: readonly ResolvedRoute[] | undefined,
  others: readonly ResolvedRoute[],
): readonly RoleChange[] {
  return records.flatMap((record) => {
    const before = routes === undefined ? recorded(record) : decideOn(routes, record)
    const after = decideOn(others, record)
    if (before.role === after.role && before.reason === after.reason && isSameName(before, after)) return []
    const { claims, route, requestId } = record
    return [{ route, issuer: textOf(claims['iss']), subject: textOf(claims['sub']), requestId, before, after }]
  })
}

/** The comparison for people. */
export function renderComparison({ callers, withoutClaims, changes }: Comparison): string {
  const lines = changes.flatMap(({ route, issuer, subject, before, after }) => [
    `${route}  ${subject || '(no subject)'} of ${issuer || '(no issuer)'}`,
    `    before  ${outcomeText(before)}`,
    `    after   ${outcomeText(after)}`,
  ])
  const left = withoutClaims === 0 ? '' : `; ${withoutClaims} recorded without claims and left out`
  lines.push(`${changes.length} of ${callers} ${callers === 1 ? 'caller' : 'callers'} would get something else${left}`)
  return `${lines.join('\n')}\n`
}

const outcomeText = ({ role, reason, sessionName }: Outcome): string =>
  `${role}${reason === undefined ? '' : ` (${reason})`}${sessionName === undefined ? '' : ` as ${sessionName}`}`

function recorded(record: RecordedDecision): Outcome {
  const { choice, refusal, session } = record.decision
  if (refusal !== undefined) return { role: 'none', reason: refusal, sessionName: undefined }
  const sessionName = isSessionNameSteady(record) ? session?.name : undefined
  return { role: choice.roleArn ?? 'none', reason: undefined, sessionName }
}

function decideOn(routes: readonly ResolvedRoute[], record: RecordedDecision): Outcome {
  const none = (reason: string): Outcome => ({ role: 'none', reason, sessionName: undefined })
  const route = routes.find(({ name }) => name === record.route)
  if (route === undefined) return none('there is no such route')
  const { auth, onMatcherError } = route
  if (!hasRoles(auth)) return none(`type ${auth.type} has no roles`)
  const format = record.decision.refusal === 'opaque_token_unsupported' ? 'opaque' : 'jwt'
  const caller = callerOfClaimsText(record.claimsText, 'a decision', format)
  const { choice, refusal, session } = decideFor(auth, onMatcherError, caller, { all: false })
  if (refusal !== undefined) return none(refusal)
  const sessionName = isSessionNameSteady(record) ? session?.name : undefined
  return { role: choice.roleArn ?? 'none', reason: undefined, sessionName }
}

/** A name that hangs on the token itself can't be compared. */
const isSameName = (before: Outcome, after: Outcome): boolean =>
  before.sessionName === undefined || after.sessionName === undefined || before.sessionName === after.sessionName

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
