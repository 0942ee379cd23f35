import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { classifyAddress, isLoopbackHost, OutboundError } from '../core/index.ts'
import type { Connect } from './connector.ts'

/** Resolves a name to addresses. Tests pass their own. */
export type Resolver = (hostname: string) => Promise<readonly string[]>

/** Addresses that a client may connect to (decisions §2.6). */
export interface GuardOptions {
  /** Allows private addresses (RFC 1918 and similar), but never metadata addresses. */
  readonly allowPrivateIP: boolean
  /** Configured URLs. Loopback is allowed only if one of them has a loopback host. */
  readonly configuredUrls: readonly string[]
  /** Host chosen by the operator: all of its addresses are allowed. */
  readonly chosenHost?: string
}

/** Whether `address`, resolved from `hostname`, is allowed. */
export type AddressCheck = (hostname: string, address: string) => boolean

const MOST_ADDRESSES_TRIED = 4

/** Resolves a name with the operating system, in its order. */
export const systemResolver: Resolver = async (hostname) =>
  (await lookup(hostname, { all: true })).map((entry) => entry.address)

/** Creates the check. Without a guard, all addresses are allowed: the operator chose the URL. */
export const createAddressCheck = (guard: GuardOptions | undefined): AddressCheck => {
  if (guard === undefined) return () => true
  const allowsLoopback = guard.configuredUrls.some((url) => URL.canParse(url) && isLoopbackHost(new URL(url).hostname))
  const chosen = guard.chosenHost?.replace(/^\[(.*)\]$/, '$1')
  return (hostname, address) => {
    if (hostname === chosen) return true
    const kind = classifyAddress(address)
    if (kind === 'metadata') return false
    if (kind === 'loopback') return allowsLoopback && isLoopbackHost(hostname)
    return kind === 'public' || guard.allowPrivateIP
  }
}

/** Resolves a name to its allowed addresses. Throws `OutboundError` blocked_address if there are none. */
export const resolveChecked = async (
  hostname: string,
  check: AddressCheck,
  resolve: Resolver,
): Promise<readonly string[]> => {
  const addresses = isIP(hostname) === 0 ? await resolve(hostname) : [hostname]
  const reachable = addresses.filter((address) => check(hostname, address))
  if (reachable.length === 0) throw new OutboundError('blocked_address')
  return reachable.slice(0, MOST_ADDRESSES_TRIED)
}

/**
 * Creates a connector that resolves, checks, and connects to the checked address, which prevents DNS rebinding. TLS
 * still verifies the host name.
 */
export const createGuardedConnect =
  (connect: Connect, check: AddressCheck, resolve: Resolver): Connect =>
  async (options, signal) => {
    const hostname = options.hostname.replace(/^\[(.*)\]$/, '$1')
    const servername = options.servername ?? (isIP(hostname) === 0 ? hostname : undefined)
    let last: unknown
    for (const address of await resolveChecked(hostname, check, resolve)) {
      try {
        return await connect(
          { ...options, hostname: address, ...(servername === undefined ? {} : { servername }) },
          signal,
        )
      } catch (error) {
        last = error
      }
    }
    throw last
  }
