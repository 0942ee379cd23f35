/** An AWS partition: a set of regions that is isolated from those of other partitions. */
interface Partition {
  readonly name: string
  /** Prefix of its region names; the first match applies. */
  readonly regions: string
  /** DNS suffix of its hosts. */
  readonly suffix: string
  /** DNS suffix of its dual-stack hosts (IPv4 and IPv6). */
  readonly dualStack: string
  /** Its default hosts comply with FIPS 140. */
  readonly isFips?: true
}

const USUAL: Partition = { name: 'aws', regions: '', suffix: 'amazonaws.com', dualStack: 'api.aws' }
/** AWS SDKs, `partitions.json`. */
const PARTITIONS: readonly Partition[] = [
  { name: 'aws-cn', regions: 'cn-', suffix: 'amazonaws.com.cn', dualStack: 'api.amazonwebservices.com.cn' },
  { name: 'aws-us-gov', regions: 'us-gov-', suffix: 'amazonaws.com', dualStack: 'api.aws', isFips: true },
  { name: 'aws-iso', regions: 'us-iso-', suffix: 'c2s.ic.gov', dualStack: 'api.aws.ic.gov' },
  { name: 'aws-iso-b', regions: 'us-isob-', suffix: 'sc2s.sgov.gov', dualStack: 'api.aws.scloud' },
  { name: 'aws-iso-e', regions: 'eu-isoe-', suffix: 'cloud.adc-e.uk', dualStack: 'api.cloud-aws.adc-e.uk' },
  { name: 'aws-iso-f', regions: 'us-isof-', suffix: 'csp.hci.ic.gov', dualStack: 'api.aws.hci.ic.gov' },
  { name: 'aws-eusc', regions: 'eusc-', suffix: 'amazonaws.eu', dualStack: 'api.amazonwebservices.eu' },
  USUAL,
]

const partition = (region: string): Partition | undefined =>
  PARTITIONS.find(({ regions }) => region.startsWith(regions))

/** The partition of a region, derived from the region's name. Default: `aws`. */
export const partitionOf = (region: string): string => partition(region)?.name ?? 'aws'

/** The STS host of a region, optionally FIPS 140 or dual-stack (AWS SDKs, endpoint rules). */
export function stsHost(
  region: string,
  { fips = false, dualStack = false }: { fips?: boolean | undefined; dualStack?: boolean | undefined },
): string {
  const { suffix, dualStack: both, isFips } = partition(region) ?? USUAL
  const name = fips && !(isFips && !dualStack) ? 'sts-fips' : 'sts'
  return `${name}.${region}.${dualStack ? both : suffix}`
}

/** Pattern of the DNS suffixes of AWS, dual stack excluded. */
export const DNS_SUFFIXES = [...new Set(PARTITIONS.map(({ suffix }) => suffix.replaceAll('.', '\\.')))].join('|')

/** Pattern of ARN partitions: those of the specification and the real ones (decisions §1). */
export const ARN_PARTITIONS = [
  'cloud',
  'cloud-cn',
  'cloud-us-gov',
  'aws',
  ...PARTITIONS.slice(0, -1).map(({ name }) => name),
].join('|')
