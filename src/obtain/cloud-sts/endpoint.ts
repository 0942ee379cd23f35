import { stsHost, type CloudSts } from '../../resources/index.ts'

/** The STS endpoint of a region: always the regional one, whichever partition it is in, with FIPS or dual stack where a config wants that. */
export const stsEndpoint = ({ region, fips, dualStack }: Pick<CloudSts, 'region' | 'fips' | 'dualStack'>): string =>
  `https://${stsHost(region, { fips: fips ?? false, dualStack: dualStack ?? false })}`

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
