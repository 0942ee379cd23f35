import { BlockList, isIP, isIPv4 } from 'node:net'

/**
 * What an address is to the guard: `metadata` is never reachable (cloud metadata services, link-local, unspecified),
 * `loopback` and `private` depend on the configuration, `public` always is.
 */
export type AddressClass = 'public' | 'private' | 'loopback' | 'metadata'

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

/** Made when the first address is looked at, which few proxies do. */
const makeRanges = (): Ranges => ({
  // Decisions §2.6: blocked whatever is set. The unspecified networks are here because Linux connects them to itself.
  metadata: listOf(
    '169.254.0.0/16',
    '100.100.100.200/32',
    '168.63.129.16/32',
    '0.0.0.0/8',
    'fe80::/10',
    'fd00:ec2::/32',
    '::/128',
  ),
  loopback: listOf('127.0.0.0/8', '::1/128'),
  // The special-purpose registries of RFC 6890 that no public service answers from, multicast and reserved included.
  // 2001::/32 (Teredo) and 64:ff9b:1::/48 (local NAT64) hide an address that we can't see, so they count as private.
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
 * The IPv4 address that an IPv6 address stands for, where it does: mapped (::ffff:0:0/96, RFC 4291 §2.5.5.2), compatible
 * (::/96), translated (::ffff:0:0:0/96, RFC 2765), NAT64 (64:ff9b::/96, RFC 6052) and 6to4 (2002::/16, RFC 3056).
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
 * What the guard has to know about a resolved address (decisions §2.6). A zone (`%eth0`) is ignored; what is no IP
 * address at all counts as `metadata`, so that nothing unknown is ever connected to.
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
