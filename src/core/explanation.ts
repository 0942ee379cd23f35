import { knownOfConnection, type Known, placeIn } from './explained-connection.ts'
import { causeOf, type Compared, type Failure } from './failure.ts'
import { FAILURES, type Fault } from './failures.ts'
import { limitIn, withLimit } from './limit.ts'
import { type Rule, RULES } from './rules.ts'

/** Why a request failed, for whoever has to do something about it: page, log, `extauth check` and `extauth stdio` say the same. */
export interface Explanation {
  /** The failure's code. */
  readonly reason: string
  /** Whose turn it is. */
  readonly who: string
  /** What happened, as far as it is known. */
  readonly cause: string
  readonly remedy: string
  readonly compared: Compared | undefined
}

const WHO: Readonly<Record<Fault, string>> = {
  caller_token: 'whoever calls',
  caller_rights: 'whoever grants rights to this caller',
  request: 'whoever calls',
  configuration: 'whoever configures the proxy',
  identity_provider: 'whoever runs the identity provider',
  backend: 'whoever runs the backend',
  proxy: 'whoever runs the proxy',
}

/** What to do about an error of a token endpoint (RFC 6749 §5.2). */
const BY_OAUTH_ERROR: ReadonlyMap<string, Pick<Known, 'remedy' | 'who'>> = new Map([
  [
    'invalid_client',
    { remedy: 'Compare `clientId`, its secret and the kind of client authentication with what is registered there.' },
  ],
  [
    'unsupported_grant_type',
    { remedy: 'Allow this grant at the provider (token exchange is mostly off at first), or correct the token URL.' },
  ],
  ['unauthorized_client', { remedy: 'Allow this grant for the client at the provider.' }],
  [
    'invalid_target',
    { remedy: 'Compare `audience` and `resource` of the config with what the provider knows.', who: 'configuration' },
  ],
])

/** Why it failed and who has to do what. What is not known more exactly is what the error table says. */
export function explain(failure: Failure): Explanation {
  const { code, detail, cause, compared } = failure
  const row = FAILURES[code]
  const beneath = causeOf(cause)
  const rule: Rule | undefined = failure.rule && RULES[failure.rule]
  const network = knownOfConnection(cause)
  const found = rule ?? network ?? ofRefusal(failure)
  const own = detail ?? row.sentence.replace(/\.$/, '')
  const said = rule?.cause ?? (network === undefined ? own : ofConnection(network, failure))
  const told = {
    reason: code,
    who: WHO[found?.who ?? row.fault],
    cause: beneath.code === undefined || said.includes(beneath.code) ? said : `${said} (${beneath.code})`,
    // That the request may have been processed is more than how its connection ended.
    remedy: code === 'backend_no_answer' ? row.remedy : (found?.remedy ?? row.remedy),
    compared,
  }
  return withLimit(told, failure.limit ?? limitIn(cause))
}

/** RFC 6749 §5.2: 401 is about client authentication, whatever its error is called. */
function ofRefusal({ refusal }: Failure): Pick<Known, 'remedy' | 'who'> | undefined {
  if (refusal === undefined) return undefined
  const { status, error } = refusal
  const isOfClient = status === 401 && (error === undefined || error === 'unauthorized_client')
  return BY_OAUTH_ERROR.get(isOfClient ? 'invalid_client' : (error ?? ''))
}

/** How a connection failed, and which: the name of a route does not tell where it leads. */
function ofConnection({ cause }: Known, failure: Failure): string {
  const place = placeIn(failure)
  return [failure.detail, cause, place].filter((part) => part !== undefined).join(': ')
}
