import { isIP } from 'node:net'

/** A forwarding hop, as described by the next one. */
export interface Hop {
  /** Undefined if hidden (RFC 7239 §6.3) or not an IP address. */
  readonly address: string | undefined
  /** Undefined if not specified. */
  readonly isSecure: boolean | undefined
}

/** Maximum hops; further ones are ignored. */
const MAX_HOPS = 32

const PAIR = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)")\s*$/

/** The hops of a `Forwarded` header (RFC 7239 §4), farthest first; an invalid element is an unknown hop. */
export function parseForwarded(header: string): Hop[] {
  return splitOutsideQuotes(header, ',')
    .slice(-MAX_HOPS)
    .map((element) => {
      let address: string | undefined
      let isSecure: boolean | undefined
      for (const pair of splitOutsideQuotes(element, ';')) {
        const match = PAIR.exec(pair)
        if (match === null) continue
        const name = (match[1] ?? '').toLowerCase()
        const value = match[2] ?? (match[3] ?? '').replace(/\\(.)/g, '$1')
        if (name === 'for') address = nodeAddress(value)
        else if (name === 'proto') isSecure = secure(value)
      }
      return { address, isSecure }
    })
}

/**
 * The hops of `X-Forwarded-For`, farthest first, with schemes from `X-Forwarded-Proto`: matched from the near end,
 * its first entry applies to all beyond. Proxies that leave the latter unchanged give it one entry for the whole
 * chain.
 */
export function parseForwardedFor(addresses: string, protos: string): Hop[] {
  const nodes = listOf(addresses)
  const schemes = listOf(protos)
  if (nodes.length === 0 && schemes.length > 0) return [{ address: undefined, isSecure: secure(schemes.at(-1) ?? '') }]
  return nodes.map((node, index) => {
    const fromEnd = nodes.length - index
    const scheme = schemes.at(-Math.min(fromEnd, schemes.length))
    return { address: nodeAddress(node), isSecure: scheme === undefined ? undefined : secure(scheme) }
  })
}

const listOf = (header: string): string[] =>
  header
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .slice(-MAX_HOPS)

const secure = (scheme: string): boolean | undefined => {
  const name = scheme.toLowerCase()
  return name === 'https' || name === 'wss' ? true : name === 'http' || name === 'ws' ? false : undefined
}

/** An address without port and brackets; undefined for anything else. */
function nodeAddress(node: string): string | undefined {
  const bare = /^\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?$/.exec(node)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(node)?.[1] ?? node
  const address = plainAddress(bare)
  return isIP(address) === 0 ? undefined : address
}

/** Removes the IPv6 form of an IPv4 address (RFC 4291 §2.5.5.2); other addresses are unchanged. */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let index = 0; index < text.length; index++) {
    const char = text[index]
    if (char === '"') isQuoted = !isQuoted
    else if (char === '\\' && isQuoted) index++
    else if (char === separator && !isQuoted) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}

/** Forwarding headers with the actual client, flat; those of the caller are never forwarded. */
export function forwardedHeaders({ address, isSecure }: Client, host: string): readonly string[] {
  // A peer without an address is `unknown` (RFC 7239 §6.2).
  const peer = address === 'unix' ? 'unknown' : address
  const proto = isSecure ? 'https' : 'http'
  return [
    'forwarded',
    `for=${peer.includes(':') ? `"[${peer}]"` : peer};host="${host}";proto=${proto}`,
    'x-forwarded-for',
    peer,
    'x-forwarded-host',
    host,
    'x-forwarded-proto',
    proto,
  ]
}

/** The client of a request, according to the peer and trusted proxies. */
export interface Client {
  /** IP address; `unix` for a Unix socket without a trusted header. */
  readonly address: string
  /** True if the client connected over TLS, to this listener or to a trusted proxy before it. */
  readonly isSecure: boolean
}
