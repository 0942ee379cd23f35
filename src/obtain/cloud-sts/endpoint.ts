import type { CloudSts } from '../../resources/index.ts'

/** Regions whose names begin so belong to partitions with other DNS suffixes than `amazonaws.com`. */
const SUFFIXES: readonly (readonly [prefix: string, suffix: string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['us-isof-', 'csp.hci.ic.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
]

/** The STS endpoint of a region: always the regional one, GovCloud and China included. */
export function stsEndpoint(region: string): string {
  const [, suffix = 'amazonaws.com'] = SUFFIXES.find(([prefix]) => region.startsWith(prefix)) ?? []
  return `https://sts.${region}.${suffix}`
}

/** An ARN as the real STS knows it: partition `cloud…` of the specification is `aws…` there (decisions §1). */
export const toAwsPartition = (arn: string): string => arn.replace(/^arn:cloud(?=[-:])/, 'arn:aws')

/** Where STS is named for all configs: before a config's own `stsEndpoint`, and after it (decisions §3.5). */
export interface StsEndpoints {
  readonly endpoint?: string
  readonly ambientEndpoint?: string
}

/** The endpoint that was named for a config; undefined where the region says where STS is. */
export const namedStsEndpoint = (
  { stsEndpoint: own }: Pick<CloudSts, 'stsEndpoint'>,
  named: StsEndpoints | undefined,
): string | undefined => named?.endpoint ?? own ?? named?.ambientEndpoint
