import { createRequire } from 'node:module'
import type * as Sts from '@aws-sdk/client-sts'
import { Failure, Secret, type AwsCredential, type Clock, type OnBehalf, type Outbound } from '../../core/index.ts'
import { createSmithyHandler, type SmithyCallOptions } from '../../net/index.ts'
import type { CloudSts } from '../../resources/index.ts'
import type { Fetched } from '../source.ts'
import { stsEndpoint, toAwsPartition } from './endpoint.ts'
import { isInvalidIdentityToken, stsFailure } from './sts-failure.ts'

export type AssumeRoleSpec = Pick<CloudSts, 'region' | 'service' | 'sessionDuration' | 'sessionPolicy' | 'policyArns'>

export interface AssumeRoleDeps {
  readonly clock: Clock
  readonly outbound: Outbound
  /** Where STS is instead of where the region says; ARNs go there as they are written. */
  readonly endpoint?: string | undefined
}

export interface AssumeRoleRequest {
  readonly roleArn: string
  readonly sessionName: string
  /** The caller's own token: a JWT that STS verifies again. */
  readonly token: Secret
  readonly onBehalfOf?: OnBehalf
  /** Nothing is waited for after this (`performance.now()`). */
  readonly endsAtMs?: number
}

/** STS answers `InvalidIdentityToken` now and then while it gets the issuer's keys: it is asked once more (decisions §5). */
const PAUSE_MS = 200

// Loaded with the first config that needs it: the others don't pay 20 MiB for it.
const load = createRequire(import.meta.url)

/** Exchanges a caller's token for credentials of a role. Throws `Failure` (decisions §5). */
export type AssumeRole = (request: AssumeRoleRequest) => Promise<Fetched>

/**
 * `AssumeRoleWithWebIdentity` for one config. Everything that the SDK would look for around it (credentials, profiles,
 * retries, endpoint variables) is given, so it reads no file, no variable and no instance metadata.
 */
export function createAssumeRole(spec: AssumeRoleSpec, { clock, outbound, endpoint }: AssumeRoleDeps): AssumeRole {
  const sts = load('@aws-sdk/client-sts') as typeof Sts
  const client = createClient(sts, spec.region, endpoint ?? stsEndpoint(spec.region), outbound)
  const arn = endpoint === undefined ? toAwsPartition : (text: string) => text
  const policy = spec.sessionPolicy === undefined ? {} : { Policy: spec.sessionPolicy }
  const policies =
    spec.policyArns === undefined ? {} : { PolicyArns: spec.policyArns.map((text) => ({ arn: arn(text) })) }

  return async ({ roleArn, sessionName, token, onBehalfOf, endsAtMs }) => {
    const command = new sts.AssumeRoleWithWebIdentityCommand({
      RoleArn: arn(roleArn),
      RoleSessionName: sessionName,
      WebIdentityToken: token.reveal(),
      DurationSeconds: spec.sessionDuration,
      ...policy,
      ...policies,
    })
    const options: SmithyCallOptions = {
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      ...(endsAtMs === undefined ? {} : { endsAtMs }),
    }
    const send = async () => fetched((await client.send(command, options)).Credentials, spec, clock.now())
    try {
      return await send().catch(async (error: unknown) => {
        const hasTime = performance.now() + PAUSE_MS < (endsAtMs ?? Infinity)
        if (!isInvalidIdentityToken(error) || !hasTime) throw error
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
        return send()
      })
    } catch (error) {
      throw stsFailure(error, clock.now())
    }
  }
}

function createClient({ STSClient }: typeof Sts, region: string, endpoint: string, outbound: Outbound): Sts.STSClient {
  return new STSClient({
    region,
    endpoint,
    requestHandler: createSmithyHandler(outbound),
    // The cache in front remembers failures and paces what follows; a retry here would only multiply them.
    maxAttempts: 1,
    retryMode: 'standard',
    defaultsMode: 'standard',
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    userAgentAppId: '',
    defaultUserAgentProvider: () => Promise.resolve([['mcp-extauth']]),
    authSchemePreference: [],
    sigv4aSigningRegionSet: [],
    credentialDefaultProvider: () => () =>
      Promise.reject(new Failure('internal_error', { detail: 'ambient credentials' })),
  })
}

/** No role session lives longer (12 h), however far clocks are apart (5 min). */
const LONGEST_SESSION_MS = (12 * 60 + 5) * 60_000
const ACCESS_KEY_ID = /^\w{16,128}$/
/** Goes into a header and into a signature. */
const VISIBLE_ASCII = /^[\x21-\x7e]{1,16384}$/

function fetched(credentials: Sts.Credentials | undefined, spec: AssumeRoleSpec, nowMs: number): Fetched {
  const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '', Expiration } = credentials ?? {}
  const expiresAtMs = Expiration?.getTime() ?? Number.NaN
  const areUsable =
    ACCESS_KEY_ID.test(AccessKeyId) && VISIBLE_ASCII.test(SecretAccessKey) && VISIBLE_ASCII.test(SessionToken)
  if (!areUsable) throw new Failure('sts_failed', { detail: 'STS gave no usable credentials' })
  if (!(expiresAtMs > nowMs)) throw new Failure('sts_failed', { detail: 'STS gave credentials that are not valid now' })
  if (expiresAtMs > nowMs + LONGEST_SESSION_MS)
    throw new Failure('sts_failed', {
      detail: 'STS gave credentials that would be valid for longer than any role session',
    })
  const credential: AwsCredential = {
    kind: 'aws',
    accessKeyId: AccessKeyId,
    secretAccessKey: new Secret(SecretAccessKey),
    sessionToken: new Secret(SessionToken),
    region: spec.region,
    service: spec.service,
    signing: { day: '', key: undefined },
  }
  return { credential, expiresAtMs }
}
