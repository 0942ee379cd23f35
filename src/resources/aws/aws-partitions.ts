/** A partition of AWS: regions of its own, which share nothing with those of others. */
interface Partition {
  readonly name: string
  /** What the names of its regions begin with; the first that fits counts. */
  readonly regions: string
  /** What the names of its hosts end in. */
  readonly suffix: string
}

/** AWS SDKs, `partitions.json`. */
const PARTITIONS: readonly Partition[] = [
  { name: 'aws-cn', regions: 'cn-', suffix: 'amazonaws.com.cn' },
  { name: 'aws-us-gov', regions: 'us-gov-', suffix: 'amazonaws.com' },
  { name: 'aws-iso', regions: 'us-iso-', suffix: 'c2s.ic.gov' },
  { name: 'aws-iso-b', regions: 'us-isob-', suffix: 'sc2s.sgov.gov' },
  { name: 'aws-iso-e', regions: 'eu-isoe-', suffix: 'cloud.adc-e.uk' },
  { name: 'aws-iso-f', regions: 'us-isof-', suffix: 'csp.hci.ic.gov' },
  { name: 'aws-eusc', regions: 'eusc-', suffix: 'amazonaws.eu' },
  { name: 'aws', regions: '', suffix: 'amazonaws.com' },
]

const partition = (region: string): Partition | undefined =>
  PARTITIONS.find(({ regions }) => region.startsWith(regions))

/** Partition that a region belongs to, by its name. */
export const partitionOf = (region: string): string => partition(region)?.name ?? 'aws'

/** What the hosts of a region end in. */
export const dnsSuffixOf = (region: string): string => partition(region)?.suffix ?? 'amazonaws.com'

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
