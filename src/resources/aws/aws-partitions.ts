/** A partition of AWS: regions of its own, which share nothing with those of others. */
interface Partition {
  readonly name: string
  /** What the names of its regions begin with; the first that fits counts. */
  readonly regions: string
  /** What the names of its hosts end in. */
  readonly suffix: string
  /** The same of hosts that have addresses of both versions of IP. */
  readonly dualStack: string
  /** Its ordinary hosts are those with FIPS 140 too. */
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

/** Partition that a region belongs to, by its name. */
export const partitionOf = (region: string): string => partition(region)?.name ?? 'aws'

/** The host of STS in a region: with FIPS 140 and for both versions of IP where that is wanted (AWS SDKs, rules of endpoints). */
export function stsHost(
  region: string,
  { fips = false, dualStack = false }: { fips?: boolean | undefined; dualStack?: boolean | undefined },
): string {
  const { suffix, dualStack: both, isFips } = partition(region) ?? USUAL
  const name = fips && !(isFips && !dualStack) ? 'sts-fips' : 'sts'
  return `${name}.${region}.${dualStack ? both : suffix}`
}

/** All that hosts of AWS end in, for a pattern; those of dual stacks aside. */
export const DNS_SUFFIXES = [...new Set(PARTITIONS.map(({ suffix }) => suffix.replaceAll('.', '\\.')))].join('|')

/** Partitions of ARNs, for a pattern: those of the specification, and the real ones (decisions §1). */
export const ARN_PARTITIONS = [
  'cloud',
  'cloud-cn',
  'cloud-us-gov',
  'aws',
  ...PARTITIONS.slice(0, -1).map(({ name }) => name),
].join('|')
