import { AsyncLocalStorage } from 'node:async_hooks'
import { networkOf } from '../http/index.ts'
import type { OnBehalf } from '../core/index.ts'
import { hashKey } from '../cache/index.ts'

/**
 * The client network of the current request. Fetches of client-supplied URLs are attributed to it, so that slow URLs
 * only delay the network that sent them (decisions §2.10).
 */
export interface ClientNetwork {
  /** Runs `work` in the context of a request from this address. */
  run<T>(address: string, work: () => Promise<T>): Promise<T>
  /** The address of the current request; undefined outside a request. */
  readonly address: string | undefined
  /** The network of the current request; empty outside a request. */
  readonly network: string
  /** Attributes a request to `url`, which the client supplied. */
  onBehalf(url: string): OnBehalf
}

/** Creates the context of one server. */
export function createClientNetwork(): ClientNetwork {
  const addresses = new AsyncLocalStorage<string>()
  const current = (): string => {
    const address = addresses.getStore()
    return address === undefined ? '' : networkOf(address)
  }
  return {
    run: (address, work) => addresses.run(address, work),
    get address() {
      return addresses.getStore()
    },
    get network() {
      return current()
    },
    onBehalf: (url) => ({ caller: current(), isUnauthenticated: true, token: hashKey([url]) }),
  }
}
