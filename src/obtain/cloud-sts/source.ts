import { Failure, onBehalfOf, type AuthenticatedCaller } from '../../core/index.ts'
import type { ResolvedAuthOf } from '../../resources/index.ts'
import type { ObtainDeps } from '../deps.ts'
import type { FetchingSource, Plan } from '../source.ts'
import { createTokenToShow } from '../token-to-show.ts'
import { createAssumeRole } from './assume-role.ts'
import { decide, type Decision } from './decision.ts'
import { namedStsEndpoint, stsEndpoint } from './endpoint.ts'
import { keyParts } from './key-parts.ts'
import { createReport } from './report.ts'
import { createRoleMapper } from './role-mapper.ts'

/** Which role a caller assumes under which name. */
export interface CloudStsPlan extends Plan {
  readonly role: string
  readonly sessionName: string
}

export type CloudStsDeps = Pick<
  ObtainDeps,
  'clock' | 'log' | 'metrics' | 'outbound' | 'caCertificate' | 'sts' | 'onMatcherError' | 'decisions' | 'upstreamTokens'
>
export type CloudStsAuth = Pick<ResolvedAuthOf<'cloudSts'>, 'name' | 'namespace' | 'spec' | 'upstream'>

/** All of the exchange with STS, connecting included (decisions §3.5). */
const DEADLINE_MS = 5000
/** An answer of STS has a few kilobytes. */
const MAX_BYTES = 256 * 1024

/**
 * Type `cloudSts`: caller → role and session name, without I/O, then temporary credentials of that role from STS, which is
 * shown the caller's own token or the ID token of an upstream provider. `plan` throws `no_role`, `no_session`, `rule_limit`,
 * `matcher_error`, `session_name_missing`, `opaque_token_unsupported`; the factory throws `config_error` for a matcher that does
 * not compile.
 */
export function createCloudStsSource(auth: CloudStsAuth, deps: CloudStsDeps): FetchingSource<CloudStsPlan> {
  const { spec } = auth
  const config = `${auth.namespace}/${auth.name}`
  const { onMatcherError = 'skip' } = deps
  const mapper = createRoleMapper(spec, { onMatcherError })
  const report = createReport(config, deps)
  const endpoint = namedStsEndpoint(spec, deps.sts)
  const { caCertPath } = spec
  const service = JSON.stringify(['STS', endpoint ?? stsEndpoint(spec.region), caCertPath ?? ''])
  let recovered: (() => void) | undefined
  const bounds = { deadlineMs: DEADLINE_MS, maxBytes: MAX_BYTES }
  const outbound = deps.outbound({
    name: auth.name,
    service,
    ...bounds,
    onRecovered: () => recovered?.(),
    ...(caCertPath === undefined ? {} : { caCert: deps.caCertificate(caCertPath) }),
  })
  const assumeRole = createAssumeRole(spec, { clock: deps.clock, outbound, endpoint })
  const identity = createTokenToShow(auth, deps.upstreamTokens)

  return {
    plan(caller) {
      const session = identity.keyParts(caller)
      const decision = decide(config, spec, mapper, caller)
      deps.decisions?.remember(caller, decision)
      report(decision)
      return planOf(decision, caller, session)
    },
    deadlineMs: DEADLINE_MS,
    fetch: (caller, { role, sessionName }, endsAtMs, own) =>
      identity.show(caller, own, ({ token }) =>
        assumeRole({ roleArn: role, sessionName, token, onBehalfOf: onBehalfOf(caller), endsAtMs }),
      ),
    onRecovered: (listener) => void (recovered = listener),
    close: () => outbound.close(),
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
    keyParts: [...keyParts(choice.roleArn, session.name, caller.claims), ...shown],
  }
}
