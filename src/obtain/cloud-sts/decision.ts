import type { AuthenticatedCaller, FailureCode, Log, Metrics } from '../../core/index.ts'
import { type CloudSts, showsCallerToken } from '../../resources/index.ts'
import { claimAt } from './claim-values.ts'
import type { RoleChoice, RoleMapper, RoleRequest } from './role-mapper.ts'
import { sessionNameOf, type SessionName } from './session-name.ts'

/** A caller's role decision and its reasons; without claim values except the session name. */
export interface Decision {
  /** `namespace/name` of the MCPExternalAuthConfig. */
  readonly config: string
  readonly choice: RoleChoice
  readonly sessionNameClaim: string
  readonly session: SessionName | undefined
  /** The failure of the request; undefined with a role and a session name. */
  readonly refusal: FailureCode | undefined
}

/** The parts of a caller that decide. */
export type DecisionCaller = Pick<AuthenticatedCaller, 'claims' | 'issuer' | 'identity' | 'format'>

/** Decides for one caller, without side effects. With `all`, every mapping is evaluated for the trace. */
export function decide(
  config: string,
  spec: Pick<CloudSts, 'sessionNameClaim' | 'source'>,
  mapper: RoleMapper,
  caller: DecisionCaller,
  options: { readonly all?: boolean; readonly request?: RoleRequest | undefined } = {},
): Decision {
  const { sessionNameClaim } = spec
  const choice = mapper.choose(caller.claims, options)
  const claim = claimAt(caller.claims, sessionNameClaim)
  const session = typeof claim === 'string' ? sessionNameOf(claim, caller.issuer, caller.identity) : undefined
  return { config, choice, sessionNameClaim, session, refusal: refusalOf(spec, caller, choice, session) }
}

function refusalOf(
  spec: Pick<CloudSts, 'source'>,
  caller: DecisionCaller,
  choice: RoleChoice,
  session: SessionName | undefined,
): FailureCode | undefined {
  // Checked first, because no role would help: AssumeRoleWithWebIdentity accepts JWTs only.
  if (caller.format === 'opaque' && showsCallerToken(spec)) return 'opaque_token_unsupported'
  return choice.refusal ?? (session === undefined ? 'session_name_missing' : undefined)
}

/**
 * Counts and logs role decisions, without values of claims: once per token, because the decision is kept with it.
 */
export function createReport(
  config: string,
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): (decision: Decision) => void {
  const decisions = metrics.counter(
    'extauth_role_decisions_total',
    'Role decisions, by how they ended: mapping, fallback, or the reason of the refusal.',
    ['outcome'],
  )
  const failedMatchers = metrics.counter(
    'extauth_role_matcher_failures_total',
    'Matchers that could not be evaluated: an error (a missing key, a wrong type) or the limit.',
    ['reason'],
  )
  return ({ choice, refusal }) => {
    decisions.with(refusal ?? choice.by ?? 'no_role').add()
    for (const { outcome, mapping, position, reason, missingKey, leftOut } of choice.steps) {
      if (leftOut !== undefined)
        log.info({ config, mapping, outcome, claim: leftOut }, 'role mapping reads a claim that the issuer left out')
      if (outcome !== 'error' && outcome !== 'limit') continue
      failedMatchers.with(outcome).add()
      log.info({ config, mapping, outcome, ...position, reason, missingKey }, 'role matcher could not be evaluated')
    }
  }
}
