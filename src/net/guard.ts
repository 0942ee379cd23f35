import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { classifyAddress, isLoopbackHost, OutboundError } from '../core/index.ts'
import type { Connect } from './connector.ts'

/** Name → addresses. The default asks the operating system; tests pass their own. */
export type Resolver = (hostname: string) => Promise<readonly string[]>

/** Which addresses a client may connect to (decisions §2.6). */
export interface GuardOptions {
  /** Whether private addresses (RFC 1918 and the like) are reachable. Never opens the metadata addresses. */
  readonly allowPrivateIP: boolean
  /** The URLs as configured: loopback is reachable only when one of them has a loopback host. */
  readonly configuredUrls: readonly string[]
  /** The operator's own choice: whatever this host is may be connected to. */
  readonly chosenHost?: string
}

/** Says whether `address`, to which `hostname` resolved, may be connected to. */
export type AddressCheck = (hostname: string, address: string) => boolean

const MOST_ADDRESSES_TRIED = 4

/** The addresses that the operating system knows for a name, in its order. */
export const systemResolver: Resolver = async (hostname) =>
  (await lookup(hostname, { all: true })).map((entry) => entry.address)

/** Turns the configuration into a check. Without a guard everything is reachable: the operator chose the address. */
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

/** The addresses of a name that pass the check. Throws `OutboundError` blocked_address when there are none. */
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
 * A connector that resolves by itself, checks what it got, and connects to the very address that was checked, so that a
 * DNS answer that changes in between reaches nothing. TLS still names and verifies the host, not the address.
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
