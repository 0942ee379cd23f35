import type { Clock, MonotonicMs, OnBehalf, Outbound } from '../../core/index.ts'
import type { SmithyCallOptions } from '../../net/index.ts'
import { toAwsPartition } from './endpoint.ts'
import type { AwsIdentity, AwsKeys } from './identity/keys.ts'
import { assumeRoleFieldsOf, policiesOf, type SessionAttributes } from './session-attributes.ts'
import { createStsClient, keysOfSession, loadSts } from './sts-client.ts'
import { areKeysRefused, stsFailure } from './sts-failure.ts'

export interface SignedAssumeRoleSpec {
  readonly region: string
  /** Seconds. */
  readonly sessionDuration: number
}

export interface SignedAssumeRoleDeps {
  readonly clock: Clock
  readonly outbound: Outbound
  readonly endpoint: string
  /** Sends ARNs unchanged: a configured endpoint may be another cloud's. */
  readonly writesArns: boolean
  /** The identity that assumes the role. */
  readonly identity: AwsIdentity
  /** The party to blame for a rejection. */
  readonly asked: 'caller' | 'process'
}

export interface SignedAssumeRoleRequest {
  readonly roleArn: string
  readonly sessionName: string
  readonly attributes?: SessionAttributes | undefined
  readonly externalId?: string | undefined
  readonly onBehalfOf?: OnBehalf
  readonly endsAtMs?: MonotonicMs
}

/**
 * `AssumeRole` with an identity of the process. Keys that STS no longer accepts are renewed, and the call is repeated
 * once. Throws `Failure` (decisions §5).
 */
export function createSignedAssumeRole(
  spec: SignedAssumeRoleSpec,
  { clock, outbound, endpoint, writesArns, identity, asked }: SignedAssumeRoleDeps,
): (request: SignedAssumeRoleRequest) => Promise<AwsKeys> {
  const keys = async () => {
    const { accessKeyId, secretAccessKey, sessionToken } = await identity.current()
    const token = sessionToken === undefined ? {} : { sessionToken: sessionToken.reveal() }
    return { accessKeyId, secretAccessKey: secretAccessKey.reveal(), ...token }
  }
  const client = createStsClient({ region: spec.region, endpoint, outbound, keys })
  const { AssumeRoleCommand } = loadSts()
  const arn = writesArns ? (text: string) => text : toAwsPartition

  return async ({ roleArn, sessionName, attributes, externalId, onBehalfOf, endsAtMs }) => {
    const command = new AssumeRoleCommand({
      RoleArn: arn(roleArn),
      RoleSessionName: sessionName,
      DurationSeconds: spec.sessionDuration,
      ...(externalId === undefined ? {} : { ExternalId: externalId }),
      ...policiesOf(attributes, arn),
      ...assumeRoleFieldsOf(attributes),
    })
    const options: SmithyCallOptions = {
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      ...(endsAtMs === undefined ? {} : { endsAtMs }),
    }
    const send = async () => keysOfSession((await client.send(command, options)).Credentials, clock.now())
    const used = await identity.current()
    try {
      return await send().catch(async (error: unknown) => {
        if (!areKeysRefused(error) || !(await identity.reject(used, undefined))) throw error
        return send()
      })
    } catch (error) {
      throw stsFailure(error, clock.now(), asked, { variesByCaller: attributes?.variesByCaller })
    }
  }
}
