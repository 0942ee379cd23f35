import {
  after,
  type Clock,
  type MonotonicMs,
  monotonicNow,
  type OnBehalf,
  type Outbound,
  type Secret,
} from '../../core/index.ts'
import type { SmithyCallOptions } from '../../net/index.ts'
import type { CloudSts } from '../../resources/index.ts'
import type { Fetched } from '../source.ts'
import { toAwsPartition } from './endpoint.ts'
import { credentialWith } from './identity/keys.ts'
import { policiesOf, type SessionAttributes } from './session-attributes.ts'
import { createStsClient, keysOfSession, loadSts } from './sts-client.ts'
import { isInvalidIdentityToken, stsFailure } from './sts-failure.ts'

export type AssumeRoleSpec = Pick<CloudSts, 'region' | 'service' | 'sessionDuration'>

export interface AssumeRoleDeps {
  readonly clock: Clock
  readonly outbound: Outbound
  readonly endpoint: string
  /** Sends ARNs unchanged: a configured endpoint may be another cloud's. */
  readonly writesArns: boolean
}

export interface AssumeRoleRequest {
  readonly roleArn: string
  readonly sessionName: string
  readonly attributes?: SessionAttributes | undefined
  /** The caller's token: a JWT that STS verifies itself. */
  readonly token: Secret
  readonly onBehalfOf?: OnBehalf
  readonly endsAtMs?: MonotonicMs
}

/**
 * STS occasionally returns `InvalidIdentityToken` while it fetches the issuer's keys: the call is repeated once
 * (decisions §5).
 */
const PAUSE_MS = 200

/** Exchanges a caller's token for credentials of a role. Throws `Failure` (decisions §5). */
export type AssumeRole = (request: AssumeRoleRequest) => Promise<Fetched>

/** `AssumeRoleWithWebIdentity` for one config. */
export function createAssumeRole(
  spec: AssumeRoleSpec,
  { clock, outbound, endpoint, writesArns }: AssumeRoleDeps,
): AssumeRole {
  const client = createStsClient({ region: spec.region, endpoint, outbound })
  const { AssumeRoleWithWebIdentityCommand } = loadSts()
  const arn = writesArns ? (text: string) => text : toAwsPartition
  return async ({ roleArn, sessionName, attributes, token, onBehalfOf, endsAtMs }) => {
    const command = new AssumeRoleWithWebIdentityCommand({
      RoleArn: arn(roleArn),
      RoleSessionName: sessionName,
      WebIdentityToken: token.reveal(),
      DurationSeconds: spec.sessionDuration,
      ...policiesOf(attributes, arn),
    })
    const options: SmithyCallOptions = {
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      ...(endsAtMs === undefined ? {} : { endsAtMs }),
    }
    const send = async (): Promise<Fetched> => {
      const keys = keysOfSession((await client.send(command, options)).Credentials, clock.now())
      return { credential: credentialWith(keys, spec), expiresAtMs: keys.expiresAtMs }
    }
    try {
      return await send().catch(async (error: unknown) => {
        const hasTime = after(monotonicNow(), PAUSE_MS) < (endsAtMs ?? Infinity)
        if (!isInvalidIdentityToken(error) || !hasTime) throw error
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
        return send()
      })
    } catch (error) {
      throw stsFailure(error, clock.now(), 'caller token', { variesByCaller: attributes?.variesByCaller })
    }
  }
}
