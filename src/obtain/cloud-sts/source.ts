import { Failure, NO_REQUEST, onBehalfOf, type AuthenticatedCaller } from '../../core/index.ts'
import { type ResolvedAuthOf, showsCallerToken } from '../../resources/index.ts'
import type { ObtainDeps } from '../deps.ts'
import type { FetchingSource, Plan } from '../source.ts'
import { createSubjectTokenSource, type SubjectTokenSource } from '../subject-token-source.ts'
import { type AssumeRoleDeps, createAssumeRole } from './assume-role.ts'
import { createSignedAssumeRole, type SignedAssumeRoleDeps } from './assume-role-signed.ts'
import { createReport, decide, type Decision } from './decision.ts'
import { createHopMetrics } from './identity/hop-metrics.ts'
import { identityFor, STS_DEADLINE_MS, stsOutbound } from './identity/identities.ts'
import { credentialWith } from './identity/keys.ts'
import { keyParts } from './key-parts.ts'
import { createRoleMapper } from './role-mapper.ts'
import type { SessionAttributes } from './session-attributes.ts'

/** A caller's role and session name. */
export interface CloudStsPlan extends Plan {
  readonly role: string
  readonly sessionName: string
  readonly attributes: SessionAttributes | undefined
}

export type CloudStsDeps = Pick<
  ObtainDeps,
  | 'clock'
  | 'log'
  | 'metrics'
  | 'outbound'
  | 'caCertificate'
  | 'sts'
  | 'env'
  | 'identities'
  | 'onMatcherError'
  | 'decisions'
  | 'upstreamTokens'
  | 'connections'
>
export type CloudStsAuth = Pick<ResolvedAuthOf<'cloudSts'>, 'name' | 'namespace' | 'spec' | 'upstream'>

/**
 * Type `cloudSts`: caller → role and session name, without I/O, then temporary credentials of that role from STS, which is
 * shown the caller's own token or the ID token of an upstream provider, or asked with an identity of the process's own.
 * `plan` throws `no_role`, `no_session`, `rule_limit`, `matcher_error`, `role_denied`, `session_name_missing`,
 * `opaque_token_unsupported`; the factory throws `config_error` for a matcher that does not compile.
 */
export function createCloudStsSource(auth: CloudStsAuth, deps: CloudStsDeps): FetchingSource<CloudStsPlan> {
  const { spec } = auth
  const config = `${auth.namespace}/${auth.name}`
  const { onMatcherError = 'skip' } = deps
  const mapper = createRoleMapper(spec, { onMatcherError })
  const report = createReport(config, deps)
  const identity = createSubjectTokenSource({ named: spec.subjectProviderName, upstream: auth.upstream }, deps)
  let recovered: (() => void) | undefined
  const { options, isNamed, endpoint } = stsOutbound(spec, deps)
  const outbound = deps.outbound({ name: auth.name, ...options, onRecovered: () => recovered?.() })
  const fetching = showsCallerToken(spec)
    ? withCallerToken(auth, identity, { clock: deps.clock, outbound, endpoint, writesArns: isNamed })
    : withIdentity(auth, deps, { clock: deps.clock, outbound, endpoint, writesArns: isNamed })

  return {
    readsRequest: mapper.readsRequest,
    plan(caller, request) {
      const session = identity.keyParts(caller)
      const view = mapper.readsRequest ? request?.view : undefined
      const decision = decide(config, spec, mapper, caller, {
        request: request && { mcp: view?.mcp ?? NO_REQUEST, route: request.route.name },
      })
      deps.decisions?.remember(caller, decision, view)
      report(decision)
      return planOf(decision, caller, session)
    },
    ...fetching,
    ...identity.changing,
    onRecovered: (listener) => void (recovered = listener),
    close: () => outbound.close(),
  }
}

type Fetching = Pick<FetchingSource<CloudStsPlan>, 'deadlineMs' | 'fetch'>

/** The caller's token is the credential for STS. */
function withCallerToken({ spec }: CloudStsAuth, identity: SubjectTokenSource, deps: AssumeRoleDeps): Fetching {
  const assumeRole = createAssumeRole(spec, deps)
  return {
    deadlineMs: STS_DEADLINE_MS,
    fetch: (caller, { role, sessionName, attributes }, endsAtMs, own) =>
      identity.show(caller, own, endsAtMs, ({ token }) =>
        assumeRole({ roleArn: role, sessionName, attributes, token, onBehalfOf: onBehalfOf(caller), endsAtMs }),
      ),
  }
}

/** An identity of the process is the credential for STS. */
function withIdentity(
  { spec }: CloudStsAuth,
  deps: CloudStsDeps,
  sts: Omit<SignedAssumeRoleDeps, 'identity' | 'asked'>,
): Fetching {
  const { source = { type: 'callerToken' } } = spec
  const hops = createHopMetrics(deps.metrics, 'role')
  const assumeRole = createSignedAssumeRole(spec, {
    ...sts,
    identity: identityFor(spec, source, deps),
    asked: 'caller',
  })
  return {
    // The identity may have to be obtained first, through its own hop.
    deadlineMs: STS_DEADLINE_MS * (source.through === undefined ? 2 : 3),
    async fetch(caller, { role, sessionName, attributes }, endsAtMs) {
      const by = { onBehalfOf: onBehalfOf(caller), endsAtMs }
      const keys = await hops.counted(assumeRole({ roleArn: role, sessionName, attributes, ...by }))
      return { credential: credentialWith(keys, spec), expiresAtMs: keys.expiresAtMs }
    },
  }
}

function planOf(
  { refusal, choice, session }: Decision,
  caller: AuthenticatedCaller,
  shown: readonly string[],
): CloudStsPlan {
  if (refusal !== undefined || choice.roleArn === undefined || session === undefined) {
    throw new Failure(refusal ?? 'no_role', choice.reason === undefined ? {} : { detail: choice.reason })
  }
  return {
    role: choice.roleArn,
    sessionName: session.name,
    attributes: choice.attributes,
    keyParts: [...keyParts(choice.roleArn, session.name, caller.claims, choice.attributes), ...shown],
  }
}
