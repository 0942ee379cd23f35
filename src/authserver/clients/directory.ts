import { randomBytes } from 'node:crypto'
import { createTtlLru } from '../../cache/index.ts'
import { Failure, Secret, type Clock } from '../../core/index.ts'
import type { Store } from '../../storage/index.ts'
import { storeFailure } from '../store-failure.ts'
import type { Client, ClientMetadata } from './client.ts'
import { isDocumentId, type ClientDocuments } from './documents.ts'
import { readClient, writeClient } from './records.ts'

const COLLECTION = 'clients'
const MOST_CLIENTS = 10_000
/** Registered clients live this long after their last use. */
const CLIENT_MS = 90 * 24 * 3_600_000
/** Use is noted in the store at most this often for a client. */
const NOTED_MS = 3_600_000
const FULL_RETRY_SECONDS = 60

/** Every client that the server knows. */
export interface ClientDirectory {
  /**
   * The client of this identifier; undefined when there is none. Throws `OAuthError` for a metadata document that can't be used,
   * `store_unavailable`.
   */
  find(id: string): Promise<Client | undefined>
  /** Registers a client; the secret is given out here and never again. Throws `overloaded` when all places are taken by used ones. */
  register(metadata: ClientMetadata): Promise<{ readonly client: Client; readonly secret: Secret | undefined }>
  /** Somebody logged in through this client, or it got a token: it keeps its place. */
  noteUse(client: Pick<Client, 'id' | 'kind'>): Promise<void>
}

export function createClientDirectory(options: {
  readonly store: Store
  readonly documents: ClientDocuments
  readonly clock: Clock
  /** Registered clients that are kept. Default 10,000. */
  readonly most?: number
}): ClientDirectory {
  const { store, documents, clock, most = MOST_CLIENTS } = options
  const noted = createTtlLru<true>({ clock, maxEntries: most })
  const keyOf = (id: string): string => `client:${id}`

  const findRegistered = async (id: string): Promise<Client | undefined> => {
    // What we never gave out needs no look; it may not even be a name that the store takes.
    if (!/^[A-Za-z0-9_-]{22}$/.test(id)) return undefined
    try {
      const stored = await store.get(keyOf(id))
      return stored === undefined ? undefined : readClient(stored.value)
    } catch (error) {
      throw storeFailure(error)
    }
  }

  return {
    find: async (id) => (isDocumentId(id) ? documents.find(id) : findRegistered(id)),
    async register(metadata) {
      const hasSecret = metadata.authMethod.startsWith('client_secret')
      const secret = hasSecret ? new Secret(randomBytes(32).toString('base64url')) : undefined
      const client: Client = {
        ...metadata,
        id: randomBytes(16).toString('base64url'),
        kind: 'registered',
        secretHash: secret?.digest(),
        issuedAt: Math.floor(clock.now() / 1000),
      }
      let admission
      try {
        admission = await store.admit(COLLECTION, keyOf(client.id), writeClient(client), CLIENT_MS, most)
      } catch (error) {
        throw storeFailure(error)
      }
      if (admission === 'full')
        throw new Failure('overloaded', {
          detail: 'too many registered clients',
          retryAfterSeconds: FULL_RETRY_SECONDS,
        })
      return { client, secret }
    },
    async noteUse({ id, kind }) {
      if (kind === 'document' || noted.get(id) === true) return
      try {
        await store.touch(COLLECTION, keyOf(id), CLIENT_MS)
      } catch (error) {
        throw storeFailure(error)
      }
      noted.set(id, true, clock.now() + NOTED_MS)
    },
  }
}
