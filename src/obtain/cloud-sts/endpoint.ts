import { Failure } from '../../core/index.ts'
import { stsHost, type CloudSts } from '../../resources/index.ts'

/** The regional STS endpoint in the region's partition, with FIPS or dual stack if configured. */
export const stsEndpoint = ({ region, fips, dualStack }: Pick<CloudSts, 'region' | 'fips' | 'dualStack'>): string =>
  `https://${stsHost(region, { fips, dualStack })}`

/** An ARN for the real STS: partition `cloud…` of the specification is `aws…` there (decisions §1). */
export const toAwsPartition = (arn: string): string => arn.replace(/^arn:cloud(?=[-:])/, 'arn:aws')

/** STS settings of the process, with higher or lower precedence than a config's own (decisions §3.5). */
export interface StsSettings {
  /** Overrides a config's `stsEndpoint`. */
  readonly endpoint?: string
  /** Default of a config's `stsEndpoint`. */
  readonly ambientEndpoint?: string
  /** `AWS_USE_FIPS_ENDPOINT`, for configs without `fips`. */
  readonly fips?: boolean
  /** `AWS_USE_DUALSTACK_ENDPOINT`, for configs without `dualStack`. */
  readonly dualStack?: boolean
}

type Spec = Pick<CloudSts, 'region' | 'fips' | 'dualStack' | 'stsEndpoint'>

/**
 * The STS endpoint of a config, and whether it is configured rather than derived from the region. Throws
 * `config_error` for a configured endpoint with FIPS or dual stack, as the AWS SDKs do: both can't be honored.
 */
export function stsEndpointOf(
  spec: Spec,
  settings: StsSettings = {},
): { readonly endpoint: string; readonly isNamed: boolean } {
  const { region, fips = settings.fips, dualStack = settings.dualStack } = spec
  const named = settings.endpoint ?? spec.stsEndpoint ?? settings.ambientEndpoint
  if (named === undefined) return { endpoint: stsEndpoint({ region, fips, dualStack }), isNamed: false }
  const wanted = [
    ...(fips === true ? [spec.fips === true ? 'fips' : 'AWS_USE_FIPS_ENDPOINT'] : []),
    ...(dualStack === true ? [spec.dualStack === true ? 'dualStack' : 'AWS_USE_DUALSTACK_ENDPOINT'] : []),
  ]
  if (wanted.length > 0)
    throw new Failure('config_error', {
      detail: `${wanted.join(' and ')} select the regional STS endpoint, but another endpoint is configured (${nameOf(spec, settings)}); set only one of them`,
    })
  return { endpoint: named, isNamed: true }
}

const nameOf = ({ stsEndpoint: own }: Spec, { endpoint }: StsSettings): string =>
  endpoint !== undefined ? '--sts-endpoint' : own !== undefined ? 'stsEndpoint' : 'AWS_ENDPOINT_URL_STS'
