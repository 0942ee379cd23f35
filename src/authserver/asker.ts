import { AsyncLocalStorage } from 'node:async_hooks'
import { networkOf } from '../http/index.ts'
import type { OnBehalf } from '../core/index.ts'
import { hashKey } from '../cache/index.ts'

/**
 * Whose request is being answered. What a client names is fetched on behalf of the network that named it, so that slow addresses
 * hold up whoever names them and nobody else (decisions §2.10).
 */
export interface Asker {
  /** Does the work for a request from this address. */
  run<T>(address: string, work: () => Promise<T>): Promise<T>
  /** The network that asks now; empty for nobody in particular. */
  readonly network: string
  /** For a request to `url` that the asker has named. */
  onBehalf(url: string): OnBehalf
}

/** One for each server. */
export function createAsker(): Asker {
  const networks = new AsyncLocalStorage<string>()
  return {
    run: (address, work) => networks.run(networkOf(address), work),
    get network() {
      return networks.getStore() ?? ''
    },
    onBehalf: (url) => ({ caller: networks.getStore() ?? '', isUnauthenticated: true, token: hashKey([url]) }),
  }
}
