import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { Failure } from '../core/index.ts'
import { parseForwarded, parseForwardedFor, type Hop, type Client } from './forwarded.ts'

/** The proxies whose forwarding headers are trusted. */
export interface TrustedProxies {
  includes(address: string): boolean
}

/** The peer address of a Unix socket. */
export const UNIX = 'unix'

/**
 * Parses `listen.trustedProxies`: ranges in CIDR notation. Peers of a Unix socket are trusted if 127.0.0.1 is, since
 * both are local. Throws `config_error`.
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
    throw new Failure('config_error', { detail: `"${entry}" is not an address range, expected CIDR notation`, cause })
  }
}

/**
 * The client behind a trusted peer: starting at the nearest hop, each address named by a trusted hop is trusted, and
 * the first untrusted one is the client's. `Forwarded` (RFC 7239) and `X-Forwarded-For` are both read, since proxies
 * that write one may pass the other from the caller: if they disagree, both are ignored.
 */
export function clientBehind(peer: Client, headers: IncomingHttpHeaders, trusted: TrustedProxies): Client {
  const { forwarded } = headers
  const standard = forwarded === undefined ? undefined : parseForwarded(forwarded)
  const older = parseForwardedFor(joined(headers['x-forwarded-for']), joined(headers['x-forwarded-proto']))
  if (standard === undefined) return walk(peer, older, trusted)
  const client = walk(peer, standard, trusted)
  if (older.length === 0) return client
  const other = walk(peer, older, trusted)
  return client.address === other.address && client.isSecure === other.isSecure ? client : peer
}

function walk(peer: Client, hops: readonly Hop[], trusted: TrustedProxies): Client {
  let { address, isSecure } = peer
  for (const hop of hops.toReversed()) {
    isSecure = hop.isSecure ?? isSecure
    // A hidden or invalid address: the hop that wrote it is the last known one.
    if (hop.address === undefined) break
    ;({ address } = hop)
    if (!trusted.includes(address)) break
  }
  return { address, isSecure }
}

const joined = (value: string | string[] | undefined): string =>
  Array.isArray(value) ? value.join(',') : (value ?? '')
