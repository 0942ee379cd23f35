import { BlockList, isIP, isIPv4 } from 'node:net'

/**
 * How the guard classifies an address: `metadata` is always blocked (cloud metadata services, link-local,
 * unspecified), `loopback` and `private` depend on the configuration, `public` is always allowed.
 */
export type AddressClass = 'public' | 'private' | 'loopback' | 'metadata'

/**
 * Cloud metadata services and link-local networks, IPv4 first (decisions §2.6): access to them gives the machine's
 * credentials. The last is the first in NAT64 form (RFC 6052).
 */
export const METADATA_RANGES = {
  ipv4: ['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32'],
  ipv6: ['fe80::/10', 'fd00:ec2::/32', '64:ff9b::a9fe:0/112'],
} as const
/** Host names of cloud metadata services. */
const METADATA_NAMES: ReadonlySet<string> = new Set([
  'metadata.google.internal',
  'metadata.goog',
  'instance-data.ec2.internal',
])

const listOf = (...ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), isIPv4(network) ? 'ipv4' : 'ipv6')
  }
  return list
}

interface Ranges {
  readonly metadata: BlockList
  readonly loopback: BlockList
  readonly private: BlockList
}
let ranges: Ranges | undefined

/** Built on first use; few proxies classify an address. */
const makeRanges = (): Ranges => ({
  // Decisions §2.6: always blocked. Linux connects the unspecified networks to itself.
  metadata: listOf(...METADATA_RANGES.ipv4, '0.0.0.0/8', ...METADATA_RANGES.ipv6, '::/128'),
  loopback: listOf('127.0.0.0/8', '::1/128'),
  // Special-purpose registries of RFC 6890 without public services, multicast and reserved included. 2001::/32
  // (Teredo) and 64:ff9b:1::/48 (local NAT64) hide the real address, so they count as private.
  private: listOf(
    '10.0.0.0/8',
    '100.64.0.0/10',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/4',
    '240.0.0.0/4',
    '64:ff9b:1::/48',
    '100::/64',
    '2001::/32',
    '2001:db8::/32',
    'fc00::/7',
    'fec0::/10',
    'ff00::/8',
  ),
})

/** The eight 16-bit groups of an IPv6 address that `isIP` accepted, an embedded dotted IPv4 tail included. */
const groupsOf = (address: string): number[] => {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  const text =
    dotted === null
      ? address
      : `${dotted[1]}${(Number(dotted[2]) * 256 + Number(dotted[3])).toString(16)}:${(Number(dotted[4]) * 256 + Number(dotted[5])).toString(16)}`
  const [head = '', tail] = text.split('::')
  const parse = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const left = parse(head)
  if (tail === undefined) return left
  const right = parse(tail)
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]
}

/**
 * The IPv4 address embedded in an IPv6 address: mapped (::ffff:0:0/96, RFC 4291 §2.5.5.2), compatible (::/96),
 * translated (::ffff:0:0:0/96, RFC 2765), NAT64 (64:ff9b::/96, RFC 6052) or 6to4 (2002::/16, RFC 3056).
 */
const embeddedIPv4 = (address: string): string | undefined => {
  const groups = groupsOf(address)
  const at = (index: number): number => groups[index] ?? 0
  const dotted = (high: number, low: number): string => `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  const zero = (from: number, to: number): boolean => groups.slice(from, to).every((group) => group === 0)
  if (at(0) === 0x2002) return dotted(at(1), at(2))
  const isMapped = zero(0, 5) && at(5) === 0xffff
  const isTranslated = zero(0, 4) && at(4) === 0xffff && at(5) === 0
  const isNat64 = at(0) === 0x64 && at(1) === 0xff9b && zero(2, 6)
  const isCompatible = zero(0, 6) && (at(6) !== 0 || at(7) > 1)
  return isMapped || isTranslated || isNat64 || isCompatible ? dotted(at(6), at(7)) : undefined
}

/**
 * Classifies a resolved address (decisions §2.6). A zone (`%eth0`) is ignored. A string that is no IP address counts
 * as `metadata`, so it is never connected to.
 */
export const classifyAddress = (address: string): AddressClass => {
  const bare = address.split('%', 1)[0] ?? ''
  const version = isIP(bare)
  if (version === 0) return 'metadata'
  const family = version === 4 ? 'ipv4' : 'ipv6'
  ranges ??= makeRanges()
  if (ranges.metadata.check(bare, family)) return 'metadata'
  if (ranges.loopback.check(bare, family)) return 'loopback'
  const inner = version === 6 ? embeddedIPv4(bare) : undefined
  if (inner !== undefined) return classifyAddress(inner)
  return ranges.private.check(bare, family) ? 'private' : 'public'
}

/** Reports whether a URL host is a metadata service, by name or by address class. Names are not resolved. */
export function isMetadataHost(host: string): boolean {
  const name = host
    .replace(/^\[|\]$/g, '')
    .toLowerCase()
    .replace(/\.$/, '')
  return METADATA_NAMES.has(name) || (isIP(name) !== 0 && classifyAddress(name) === 'metadata')
}

interface Network {
  readonly address: string
  readonly bits: number
  readonly family: 'ipv4' | 'ipv6'
}

function networkOf(cidr: string): Network | undefined {
  const [, address = '', length = ''] = /^([^/%]+)\/(0|[1-9]\d{0,2})$/.exec(cidr) ?? []
  const version = isIP(address)
  const bits = Number(length)
  if (version === 0 || bits > (version === 4 ? 32 : 128)) return undefined
  // Some parsers read an embedded IPv4 network as that network.
  if (version === 6 && bits >= 96 && embeddedIPv4(address) !== undefined && !/^64:ff9b:/i.test(address))
    return undefined
  return { address, bits, family: version === 4 ? 'ipv4' : 'ipv6' }
}

function holds(outer: Network, inner: Network): boolean {
  if (outer.family !== inner.family || outer.bits > inner.bits) return false
  const list = new BlockList()
  list.addSubnet(outer.address, outer.bits, outer.family)
  return list.check(inner.address, inner.family)
}

/**
 * The metadata ranges inside a network, minus `except`. Undefined for an invalid network; leading zeros are invalid
 * because parsers disagree on them.
 */
export function metadataIn(cidr: string, except: readonly string[] = []): string[] | undefined {
  const network = networkOf(cidr)
  const excepted = except.map(networkOf)
  if (network === undefined) return undefined
  if (!excepted.every((one) => one !== undefined)) return undefined
  return METADATA_RANGES[network.family].filter((range) => {
    const other = networkOf(range)
    if (other === undefined) return false
    const common = holds(network, other) ? other : holds(other, network) ? network : undefined
    return common !== undefined && !excepted.some((one) => holds(one, common))
  })
}
