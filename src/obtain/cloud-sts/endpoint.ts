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
