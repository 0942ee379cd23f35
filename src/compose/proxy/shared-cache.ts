import { createSharedCredentials, type CredentialCache, type SharedCredentials } from '../../cache/index.ts'
import {
  Failure,
  type Clock,
  type Credential,
  type Log,
  type Metrics,
  type Secret,
  type Secrets,
} from '../../core/index.ts'
import { storedCredential } from '../../obtain/index.ts'
import { authsOf, secretsNamedBy } from '../../resources/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import { createSeal, createSealingKeys, type SealingKeys, type Stores, troubleOf } from '../../storage/index.ts'
import { storageConfig } from '../storage-config.ts'

/** Shorter keys could be guessed by a reader of the store. */
const LEAST_KEY_BYTES = 32

/** The current shared cache; changes with the configuration. */
export interface SharedCacheSlot {
  current: SharedCredentials<Credential> | undefined
}

export interface SharedCacheDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly stores: Stores
  readonly cache: CredentialCache<Credential>
  readonly slot: SharedCacheSlot
  /** The secrets that `config` references. */
  readonly secrets: Secrets
}

/** The shared cache of one configuration. */
export interface SharedCache {
  /** Starts sharing and replaces the previous shared cache. */
  activate(): void
  /** Why this replica uses only its local cache; undefined while credentials are shared. */
  readonly problem: string | undefined
  close(): Promise<void>
}

/**
 * Prepares the shared cache. It opens the store first, so that the previous configuration does not close a connection
 * still in use. Throws `config_error` for a sealing secret that is too short.
 */
export function prepareSharedCache(config: ResolvedProxy, deps: SharedCacheDeps): SharedCache {
  const { cache: wanted, namespace } = config
  const { clock, log, metrics, secrets, slot } = deps
  if (wanted === undefined) {
    return { activate: () => void (slot.current = undefined), problem: undefined, close: () => Promise.resolve() }
  }
  const storage = storageConfig(wanted.storage, namespace, secrets)
  const handles = wanted.keySecretRefs.map((ref) => secrets.handle(ref, 'bytes'))
  for (const handle of handles) if (handle.version > 0) longEnough(handle.current(), handle.label)
  const keys = checkedKeys(createSealingKeys(handles))
  const store = deps.stores.open(storage, `${namespace}/${wanted.name}`, { isDurable: false })
  let shared: SharedCredentials<Credential> | undefined

  /** Reads secrets again after another replica has seen them change, before the file watch notices. */
  const refresh = async (name: string | undefined) => {
    const of = config.routes
      .flatMap(authsOf)
      .filter((auth) => name === undefined || `${auth.namespace}/${auth.name}` === name)
    const named = of.flatMap((auth) => secretsNamedBy(auth))
    await Promise.allSettled(named.map(({ value }) => secrets.handle(value).refresh()))
  }

  return {
    activate() {
      shared = createSharedCredentials<Credential>({
        store,
        seal: createSeal(keys, clock),
        codec: storedCredential,
        clock,
        log,
        metrics,
        random: Math.random,
        troubleOf: (error) => ({ ...store.health().endpoint, ...troubleOf(error) }),
        onPurge: (filter) => void deps.cache.purgeHere(filter),
        onRotation: (name) => void refresh(name),
      })
      slot.current = shared
    },
    get problem() {
      return shared?.problem
    },
    async close() {
      if (slot.current === shared) slot.current = undefined
      shared?.close()
      await store.close()
    },
  }
}

function longEnough(secret: Secret, label?: string): void {
  if (secret.bytes().length >= LEAST_KEY_BYTES) return
  const name = label === undefined ? 'a sealing secret' : `the sealing secret ${label}`
  throw new Failure('config_error', { detail: `${name} has fewer than ${LEAST_KEY_BYTES} bytes`, secret: label })
}

/** Rejects keys that become too short later: sealing fails, and the replica falls back to its local cache. */
function checkedKeys(keys: SealingKeys): SealingKeys {
  return {
    isEphemeral: keys.isEphemeral,
    refresh: () => keys.refresh(),
    current() {
      const secrets = keys.current()
      for (const secret of secrets) longEnough(secret)
      return secrets
    },
  }
}
