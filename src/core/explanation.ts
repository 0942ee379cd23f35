import { diagnoseByCode, type Diagnosis, destinationIn } from './connection-diagnosis.ts'
import { causeOf, type Compared, type Failure } from './failure.ts'
import { FAILURES, type Fault } from './failures.ts'
import { limitIn, withLimit } from './limit.ts'
import { type Rule, RULES } from './rules.ts'

/**
 * Why a request failed, for the person who must act. Inspector, log, `extauth check` and `extauth stdio` use the same
 * text.
 */
export interface Explanation {
  /** The failure's code. */
  readonly reason: string
  /** The party that must act. */
  readonly who: string
  /** The most precise cause available. */
  readonly cause: string
  readonly remedy: string
  readonly compared: Compared | undefined
}

const WHO: Readonly<Record<Fault, string>> = {
  caller_token: 'the client',
  caller_rights: "the administrator of this caller's permissions",
  request: 'the client',
  configuration: 'the operator (configuration)',
  identity_provider: 'the operator of the identity provider',
  backend: 'the operator of the backend',
  proxy: 'the operator of the proxy',
}

/** Remedies for error codes of a token endpoint (RFC 6749 §5.2). */
const BY_OAUTH_ERROR: ReadonlyMap<string, Pick<Diagnosis, 'remedy' | 'who'>> = new Map([
  [
    'invalid_client',
    {
      remedy:
        'Compare `clientId`, its secret and the client authentication method with the registration at the provider.',
    },
  ],
  [
    'unsupported_grant_type',
    { remedy: 'Enable this grant at the provider (token exchange is often off by default), or correct the token URL.' },
  ],
  ['unauthorized_client', { remedy: 'Enable this grant for the client at the provider.' }],
  [
    'invalid_target',
    { remedy: "Compare `audience` and `resource` with the provider's configuration.", who: 'configuration' },
  ],
])

/**
 * Explains a failure: cause, responsible party and remedy, from the underlying error where it has more detail than the
 * error table.
 */
export function explain(failure: Failure): Explanation {
  const { code, detail, cause, compared } = failure
  const row = FAILURES[code]
  const root = causeOf(cause)
  const rule: Rule | undefined = failure.rule && RULES[failure.rule]
  const network = diagnoseByCode(cause)
  const found = rule ?? network ?? ofRefusal(failure)
  const own = detail ?? row.sentence.replace(/\.$/, '')
  const text = rule?.cause ?? (network === undefined ? own : ofConnection(network, failure))
  const explanation = {
    reason: code,
    who: code === 'not_connected' ? 'the user, in a browser' : WHO[found?.who ?? row.fault],
    cause: root.code === undefined || text.includes(root.code) ? text : `${text} (${root.code})`,
    // "The request may have been processed" matters more than how the connection ended.
    remedy: code === 'backend_no_answer' ? row.remedy : (found?.remedy ?? row.remedy),
    compared,
  }
  return withLimit(explanation, failure.limit ?? limitIn(cause))
}

/** RFC 6749 §5.2: 401 means client authentication failed, whatever the error code. */
function ofRefusal({ refusal }: Failure): Pick<Diagnosis, 'remedy' | 'who'> | undefined {
  if (refusal === undefined) return undefined
  const { status, error } = refusal
  const isOfClient = status === 401 && (error === undefined || error === 'unauthorized_client')
  return BY_OAUTH_ERROR.get(isOfClient ? 'invalid_client' : (error ?? ''))
}

/** Cause plus destination: a route's name does not reveal its target. */
function ofConnection({ cause }: Diagnosis, failure: Failure): string {
  const destination = destinationIn(failure)
  return [failure.detail, cause, destination].filter((part) => part !== undefined).join(': ')
}
