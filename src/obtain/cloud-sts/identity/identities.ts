import { type AmbientSpec, canonicalJson, type CloudSts, type StsSource } from '../../../resources/index.ts'
import type { ObtainDeps } from '../../deps.ts'
import { createSignedAssumeRole } from '../assume-role-signed.ts'
import { stsEndpointOf } from '../endpoint.ts'
import { createAmbient } from './ambient.ts'
import { createHopMetrics } from './hop-metrics.ts'
import { createKeptIdentity } from './kept.ts'
import type { KeysOnly } from './keys.ts'
import { MOST_METADATA_BYTES, NEXT_DOOR_MS } from './metadata.ts'
import type { Identities, OpenIdentity } from './pool.ts'
import { createRoleAssumers } from './role-assumers.ts'
import { type EpochMs, Failure } from '../../../core/index.ts'
import { createStsClient, loadSts, type StsClientOptions } from '../sts-client.ts'
import { stsFailure } from '../sts-failure.ts'

export type IdentityDeps = Pick<
  ObtainDeps,
  'clock' | 'log' | 'metrics' | 'outbound' | 'caCertificate' | 'sts' | 'env' | 'identities'
>
type IdentitySpec = Pick<CloudSts, 'region' | 'fips' | 'dualStack' | 'stsEndpoint' | 'caCertPath' | 'source'>

/** Deadline of an STS call, connecting included (decisions §3.5). */
export const STS_DEADLINE_MS = 5_000
/** Response limit; STS responses have a few kilobytes. */
const MOST_STS_BYTES = 256 * 1024
/** AWS limits chained role sessions to an hour. */
const HOP_SECONDS = 3_600
/** Session name of the first hop, which the proxy makes for itself. */
const HOP_SESSION = 'mcp-extauth'

/** Outbound options for the STS connections of a config. */
export function stsOutbound(
  spec: Omit<IdentitySpec, 'source'>,
  { sts, caCertificate }: Pick<ObtainDeps, 'sts' | 'caCertificate'>,
) {
  const { caCertPath } = spec
  const { endpoint, isNamed } = stsEndpointOf(spec, sts)
  return {
    isNamed,
    endpoint,
    options: {
      service: JSON.stringify(['STS', endpoint, caCertPath ?? '']),
      deadlineMs: STS_DEADLINE_MS,
      maxBytes: MOST_STS_BYTES,
      ...(caCertPath === undefined ? {} : { caCert: caCertificate(caCertPath) }),
    },
  }
}

/** The identity that a config signs with, or assumes roles from; shared between configs with equal settings. */
export function identityFor(spec: IdentitySpec, source: StsSource, deps: IdentityDeps): OpenIdentity {
  const { region, caCertPath } = spec
  const { endpoint } = stsOutbound(spec, deps)
  const key = (what: unknown): string => canonicalJson([what, region, endpoint, caCertPath ?? null])
  const ambientOf = (held: Identities, { chain, profile }: AmbientSpec): OpenIdentity =>
    held.get(key({ chain, profile }), () => openAmbient(spec, { chain, profile }, deps))
  const { through } = source
  if (through === undefined) return ambientOf(deps.identities, source)
  return deps.identities.get(key(through), (uses) => openHop(spec, through, ambientOf(uses, through.source), deps))
}

const NAME = 'aws-identity'

function openAmbient(spec: IdentitySpec, place: AmbientSpec, deps: IdentityDeps): OpenIdentity {
  const { region } = spec
  const { endpoint, options } = stsOutbound(spec, deps)
  const outbound = deps.outbound({ name: NAME, ...options })
  const assumers = createRoleAssumers({ region, endpoint, outbound }, () => deps.clock.now())
  const metadata = deps.outbound({
    name: 'aws-metadata',
    bypassEgressProxy: true,
    deadlineMs: NEXT_DOOR_MS,
    maxBytes: MOST_METADATA_BYTES,
    retry: true,
    // The identity cache decides when to retry.
    breaker: false,
  })
  const sso = deps.outbound({ name: 'aws-sso', deadlineMs: STS_DEADLINE_MS, maxBytes: MOST_STS_BYTES, breaker: false })
  const ambient = createAmbient(place, { env: deps.env, assumers, metadata, sso })
  const kept = createKeptIdentity(() => ambient.fetch(), {
    ...deps,
    name: 'the identity of the process',
    metrics: createHopMetrics(deps.metrics, 'process'),
  })
  const who = (keys: KeysOnly) => callerIdentity({ region, endpoint, outbound }, keys, deps.clock.now())
  const close = async () => {
    kept.close()
    await Promise.all([outbound.close(), metadata.close(), sso.close()])
  }
  return { ...kept, ambient, from: undefined, who, close }
}

function openHop(
  spec: IdentitySpec,
  { roleArn, externalId }: NonNullable<StsSource['through']>,
  from: OpenIdentity,
  deps: IdentityDeps,
): OpenIdentity {
  const { region } = spec
  const { endpoint, isNamed, options } = stsOutbound(spec, deps)
  const outbound = deps.outbound({ name: NAME, ...options })
  const assumeRole = createSignedAssumeRole(
    { region, sessionDuration: HOP_SECONDS },
    { clock: deps.clock, outbound, endpoint, writesArns: isNamed, identity: from, asked: 'process' },
  )
  const kept = createKeptIdentity(() => assumeRole({ roleArn, sessionName: HOP_SESSION, externalId }), {
    ...deps,
    name: roleArn,
    metrics: createHopMetrics(deps.metrics, 'hub'),
  })
  const close = async () => {
    kept.close()
    await outbound.close()
  }
  return { ...kept, ambient: from.ambient, from, who: from.who, close }
}

/** Longer ones are no ARN of anybody. */
const LONGEST_ARN = 2_048

/** The ARN of these keys (`GetCallerIdentity`, which needs no permission). Throws `Failure`. */
async function callerIdentity(
  options: Omit<StsClientOptions, 'keys'>,
  { accessKeyId, secretAccessKey, sessionToken }: KeysOnly,
  nowMs: EpochMs,
): Promise<string> {
  const token = sessionToken === undefined ? {} : { sessionToken: sessionToken.reveal() }
  const keys = { accessKeyId, secretAccessKey: secretAccessKey.reveal(), ...token }
  const client = createStsClient({ ...options, keys: () => Promise.resolve(keys) })
  const { GetCallerIdentityCommand } = loadSts()
  try {
    const { Arn = '' } = await client.send(new GetCallerIdentityCommand({}))
    if (/^arn:[\x21-\x7e]+$/.test(Arn) && Arn.length <= LONGEST_ARN) return Arn
  } catch (error) {
    throw stsFailure(error, nowMs, 'process')
  }
  throw new Failure('sts_failed', { detail: 'STS did not say whose keys these are' })
}
