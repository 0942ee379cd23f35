import { createFileStore } from './file.ts'
import { measureStore } from './measured.ts'
import { createMemoryStore } from './memory.ts'
import type { Store } from './port.ts'
import type { RedisConfig, RedisRuntime, StoreTls } from './redis/config.ts'
import { createLossWatch, type LossWatch } from './redis/loss-watch.ts'
import { openParts, type OpenParts } from './redis/parts.ts'
import { createRedisStore, keyPrefix } from './redis/store.ts'
import { createSubscriptions } from './subscriptions.ts'

/** Memory, a directory of this machine, or the store of this configuration. */
export type StorageConfig =
  | { readonly type: 'memory' }
  | { readonly type: 'file'; readonly directory: string }
  | { readonly type: 'kvstore'; readonly kvstore: RedisConfig }

export interface StoresRuntime extends RedisRuntime {
  /** Creates the memory of a scope. Default: memory of this process. */
  readonly memory?: ((scope: string) => Store) | undefined
}

export interface OpenOptions {
  /**
   * False: writes never wait for replicas, regardless of `waitReplicas`, and may be lost with the master. Default
   * true.
   */
  readonly isDurable?: boolean
}

/** All stores of a process. */
export interface Stores {
  /**
   * Opens the store of one resource with its own keys; `scope` is its `<namespace>/<name>`. Equal configurations share
   * connections, which close with the last store. Memory of a scope and the store of a directory stay open until `close`.
   * Never throws for an unreachable store; its operations do.
   */
  open(config: StorageConfig, scope: string, options?: OpenOptions): Store
  /**
   * Sends each needed command to an external store; returns the rejections as text. The store must be open. Throws
   * `StoreError`.
   */
  refusals(config: StorageConfig, scope: string): Promise<readonly string[]>
  /** State of external stores, one per open configuration. */
  states(): readonly StoreState[]
  close(): Promise<void>
}

/** State of a responding store. */
export interface StoreState {
  /** Milliseconds by which its clock is ahead; undefined if unknown. */
  readonly clockAheadMs: number | undefined
  /** Problems as text; no address, no credential. */
  readonly remarks: readonly string[]
  /** The user lacks the permission to read the eviction policy. */
  readonly isBlind: boolean
}

interface Shared {
  readonly parts: OpenParts
  readonly watches: Set<LossWatch>
  users: number
}

/** Creates the stores of a process. */
export function createStores(runtime: StoresRuntime): Stores {
  /** Memory by scope, files by directory. */
  const locals = new Map<string, Store>()
  const shared = new Map<string, Shared>()

  const kept = (name: string, create: () => Store): Store => {
    const local = locals.get(name) ?? create()
    locals.set(name, local)
    const subscriptions = createSubscriptions((channel, listener) => local.subscribe(channel, listener))
    return {
      ...measureStore(local, runtime.metrics),
      subscribe: subscriptions.subscribe,
      // Its content stays for the next one to open it.
      close: async () => subscriptions.close(),
    }
  }

  const redis = (config: RedisConfig, scope: string, { isDurable = true }: OpenOptions): Store => {
    const key = identityOf(config)
    const one = shared.get(key) ?? { parts: openParts(config, runtime), watches: new Set(), users: 0 }
    if (one.users === 0) warn(config)
    shared.set(key, one)
    one.users += 1
    const release = () => {
      watch.close()
      one.watches.delete(watch)
      one.users -= 1
      if (one.users === 0) {
        shared.delete(key)
        one.parts.close()
      }
      return Promise.resolve()
    }
    const store = createRedisStore(isDurable ? one.parts.durable() : one.parts.plain, scope, release)
    const watch = createLossWatch(store, scope, runtime)
    one.watches.add(watch)
    return measureStore(store, runtime.metrics)
  }

  const warn = ({ tls, sentinelTls }: RedisConfig) => {
    const careless = { tls, sentinelTls }
    for (const [field, options] of Object.entries(careless)) {
      if (options?.insecureSkipVerify !== true) continue
      runtime.log.warn(
        { field },
        'insecureSkipVerify: the store is not authenticated, attackers in the network can impersonate it',
      )
    }
  }

  return {
    open(config, scope, options = {}) {
      if (config.type === 'kvstore') return redis(config.kvstore, scope, options)
      const { type } = config
      if (type === 'memory') return kept(`memory ${scope}`, () => runtime.memory?.(scope) ?? createMemoryStore(runtime))
      const { directory } = config
      return kept(`file ${directory}`, () => createFileStore({ ...runtime, directory }))
    },
    async refusals(config, scope) {
      if (config.type !== 'kvstore') return []
      return (await shared.get(identityOf(config.kvstore))?.parts.refusals(keyPrefix(scope))) ?? []
    },
    states: () =>
      [...shared.values()].map(({ parts: { reported, messagesProblem }, watches }) => {
        const lost = [...watches].map(({ remark }) => remark)
        const unheard = messagesProblem && `${UNHEARD}: ${messagesProblem}`
        return {
          clockAheadMs: reported.clockAheadMs,
          remarks: [reported.remark, unheard, ...lost].filter((remark) => remark !== undefined),
          isBlind: reported.isBlind,
        }
      }),
    async close() {
      for (const { parts, watches } of shared.values()) {
        for (const watch of watches) watch.close()
        parts.close()
      }
      shared.clear()
      for (const store of locals.values()) await store.close()
      locals.clear()
    },
  }
}

const UNHEARD = 'messages of other replicas are not received (polling for purges and revocations every second)'

/** Configurations are equal if all fields are, secrets by reference. */
function identityOf(config: RedisConfig): string {
  const tls = (options: StoreTls | undefined) => options && [options.ca?.label, options.insecureSkipVerify]
  const { username, password, server, masterName, db, sentinels, waitReplicas } = config
  return JSON.stringify([
    [username?.label ?? null, password.label, masterName, db, waitReplicas],
    [...(server === undefined ? sentinels : [server])].map(({ host, port }) => [host, port]),
    [tls(config.tls) ?? null, tls(config.sentinelTls) ?? null],
    [config.dialTimeoutMs, config.readTimeoutMs, config.writeTimeoutMs],
  ])
}
