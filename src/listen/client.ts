import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { Failure } from '../core/index.ts'
import { parseForwarded, parseForwardedFor, type Hop, type Client } from './forwarded.ts'

/** Whom to believe about where a request came from. */
export interface TrustedProxies {
  includes(address: string): boolean
}

/** The address of a Unix socket's peer. */
export const UNIX = 'unix'

/**
 * Reads `listen.trustedProxies`: ranges in CIDR notation. Whoever connects to a Unix socket is trusted when 127.0.0.1 is:
 * both are this machine. Throws `config_error`.
 */
export function createTrustedProxies(entries: readonly string[]): TrustedProxies {
  const ranges = new BlockList()
  for (const entry of entries) addRange(ranges, entry)
  const includes = (address: string): boolean => {
    const family = FAMILY[isIP(address)]
    return family === undefined ? address === UNIX && includes('127.0.0.1') : ranges.check(address, family)
  }
  return { includes }
}

const FAMILY: Readonly<Record<number, 'ipv4' | 'ipv6'>> = { 4: 'ipv4', 6: 'ipv6' }

function addRange(ranges: BlockList, entry: string): void {
  const [, address = '', length = ''] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? []
  const family = FAMILY[isIP(address)]
  try {
    if (family === undefined) throw new TypeError('no address')
    ranges.addSubnet(address, Number(length), family)
  } catch (cause) {
    throw new Failure('config_error', { detail: `"${entry}" is no range of addresses`, cause })
  }
}

/**
 * The client behind a trusted peer: from our end of the chain, each address that a trusted hop names is believed, and
 * the first that is not trusted itself is the client's. `Forwarded` (RFC 7239) and `X-Forwarded-For` are both read, since
 * hops that write one let callers send the other: where they disagree, neither is believed.
 */
export function clientBehind(peer: Client, headers: IncomingHttpHeaders, trusted: TrustedProxies): Client {
  const { forwarded } = headers
  const standard = forwarded === undefined ? undefined : parseForwarded(forwarded)
  const older = parseForwardedFor(joined(headers['x-forwarded-for']), joined(headers['x-forwarded-proto']))
  if (standard === undefined) return walk(peer, older, trusted)
  const said = walk(peer, standard, trusted)
  if (older.length === 0) return said
  const other = walk(peer, older, trusted)
  return said.address === other.address && said.isSecure === other.isSecure ? said : peer
}

function walk(peer: Client, hops: readonly Hop[], trusted: TrustedProxies): Client {
  let { address, isSecure } = peer
  for (const hop of hops.toReversed()) {
    isSecure = hop.isSecure ?? isSecure
    // An address that is hidden or none: the hop that wrote it is the last that is known.
    if (hop.address === undefined) break
    ;({ address } = hop)
    if (!trusted.includes(address)) break
  }
  return { address, isSecure }
}

const joined = (value: string | string[] | undefined): string =>
  Array.isArray(value) ? value.join(',') : (value ?? '')
