import { randomBytes } from 'node:crypto'
import { createTtlLru } from '../../cache/index.ts'
import { type Claims, type Clock, Failure, type Metrics, Secret } from '../../core/index.ts'
import { type Admission, type Bound, type Seal, type Store, StoreError } from '../../storage/index.ts'
import { OAuthError } from '../oauth-error.ts'
import { storeFailure } from '../store-failure.ts'
import type { Client, ClientMetadata } from './client.ts'
import type { ConfiguredClients } from './configured.ts'
import { type ClientDocuments, isDocumentId } from './documents.ts'
import { readJsonObject } from '../../http/index.ts'

const COLLECTION = 'clients'
const MOST_CLIENTS = 10_000
/** Size limit of one registration in bytes, because registration is open. */
const CLIENT_BYTES = 8 * 1024
/** Memory budget of all registrations, in bytes per slot; a typical one takes 500. */
const BYTES_PER_PLACE = 4 * 1024
/** In-memory stores also hold logins; registrations get at most a quarter. */
const MOST_MEMORY_BYTES = 128 * 1024 * 1024
/** Registered clients expire this long after their last use. */
const CLIENT_MS = 90 * 24 * 3_600_000
/** Minimum interval between updates of a client's last use in the store. */
const NOTED_MS = 3_600_000
const FULL_RETRY_SECONDS = 60

/** All known clients. */
export interface ClientDirectory {
  /**
   * The client with this identifier; undefined when unknown. Throws `OAuthError` for an invalid metadata document,
   * `store_unavailable`.
   */
  find(id: string): Promise<Client | undefined>
  /**
   * Registers a client. The secret is returned only here. Throws `overloaded` when all slots hold clients in use,
   * `OAuthError` `invalid_client_metadata` above 8 KiB.
   */
  register(metadata: ClientMetadata): Promise<{ readonly client: Client; readonly secret: Secret | undefined }>
  /**
   * Records that the client is in use (a login or token), so that it is not evicted. Skipped while the store fails.
   */
  noteUse(client: Pick<Client, 'id' | 'kind'>): Promise<void>
  /** Message for operators while registrations are rejected; undefined otherwise. */
  readonly problem: string | undefined
}

export function createClientDirectory(options: {
  readonly store: Store
  /** Records hold no secret, but must be authentic: redirect URIs decide where codes go. */
  readonly seal: Seal
  /** Undefined without metadata document support. */
  readonly documents: ClientDocuments | undefined
  readonly configured: ConfiguredClients
  readonly clock: Clock
  readonly metrics: Metrics
  /** Name of the server, for metrics. */
  readonly server: string
  /** Maximum number of registered clients. Default 10,000. */
  readonly most?: number
}): ClientDirectory {
  const { store, seal, documents, configured, clock, most = MOST_CLIENTS } = options
  const bound = boundOf(most, store)
  const registrations = createRegistrationMetrics(options.metrics, options.server)
  let isFull = false
  const noted = createTtlLru<true>({ clock, maxEntries: most })
  const keyOf = (id: string): string => `client:${id}`

  const findRegistered = async (id: string): Promise<Client | undefined> => {
    // An identifier not issued here needs no lookup; it may even be an invalid store key.
    if (!/^[A-Za-z0-9_-]{22}$/.test(id)) return undefined
    try {
      const key = keyOf(id)
      const stored = await store.get(key)
      const opened = stored && (await seal.open(key, stored.value))
      if (stored === undefined || opened === undefined) return undefined
      // Sealed with a secret that is being rotated out (authserver.md §5).
      const ttlMs = Math.ceil(stored.leftMs)
      if (!opened.isCurrent && ttlMs >= 1 && ttlMs < Infinity)
        await store.compareAndSet(key, stored.version, seal.seal(key, opened.plain), ttlMs)
      return readClient(opened.plain)
    } catch (error) {
      // The sealing secret was removed: the client must register again.
      if (error instanceof StoreError && error.kind === 'unknown_key') return undefined
      throw storeFailure(error)
    }
  }

  return {
    find: async (id) =>
      configured.find(id) ?? (documents !== undefined && isDocumentId(id) ? documents.find(id) : findRegistered(id)),
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
      const record = writeClient(client)
      if (record.length > CLIENT_BYTES)
        throw new OAuthError('invalid_client_metadata', `a registration may hold at most ${CLIENT_BYTES} bytes`)
      let admission
      try {
        const key = keyOf(client.id)
        admission = await store.admit(COLLECTION, key, seal.seal(key, record), CLIENT_MS, bound)
      } catch (error) {
        throw storeFailure(error)
      }
      registrations(admission)
      isFull = admission.outcome === 'full'
      if (isFull)
        throw new Failure('overloaded', {
          detail: 'too many registered clients',
          retryAfterSeconds: FULL_RETRY_SECONDS,
        })
      return { client, secret }
    },
    async noteUse({ id, kind }) {
      if (kind !== 'registered' || noted.get(id) === true) return
      try {
        await store.touch(COLLECTION, keyOf(id), CLIENT_MS)
      } catch (error) {
        // The grant is already consumed; an error now would cost the user a login.
        if (error instanceof StoreError) return
        throw error
      }
      noted.set(id, true, clock.now() + NOTED_MS)
    },
    get problem() {
      if (!isFull) return undefined
      return `new client registrations are rejected: the limit (${bound.members} clients, ${bound.bytes} bytes) is used up by clients in use`
    },
  }
}

function boundOf(members: number, store: Store): Bound {
  const bytes = members * BYTES_PER_PLACE
  return { members, bytes: store.health().kind === 'memory' ? Math.min(bytes, MOST_MEMORY_BYTES) : bytes }
}

/** Metrics: registrations by outcome, evictions, clients and bytes held. */
function createRegistrationMetrics(metrics: Metrics, server: string): (admission: Admission) => void {
  const outcomes = metrics.counter(
    'extauth_authserver_registrations_total',
    'Registrations of clients, by outcome: registered, or full (all places are taken by clients in use).',
    ['outcome'],
  )
  const evicted = metrics.counter(
    'extauth_authserver_clients_evicted_total',
    'Registered clients that were evicted unused for newer ones.',
  )
  const held = metrics.gauge(
    'extauth_authserver_clients',
    'Registered clients of a server, as of the last registration here.',
    ['server'],
    'max',
  )
  const bytes = metrics.gauge(
    'extauth_authserver_clients_bytes',
    'Bytes that registered clients of a server hold, as of the last registration here.',
    ['server'],
    'max',
  )
  return (admission) => {
    outcomes.with(admission.outcome === 'added' ? 'registered' : 'full').add()
    if (admission.evicted > 0) evicted.with().add(admission.evicted)
    held.with(server).set(admission.members)
    bytes.with(server).set(admission.bytes)
  }
}

/** A registered client as it is stored, before it is sealed. */
function writeClient(client: Client): Buffer {
  return Buffer.from(JSON.stringify(client))
}

/** The client of a stored record; undefined for an invalid record. */
function readClient(value: Buffer): Client | undefined {
  const record = readJsonObject(value)
  if (record === undefined || typeof record.id !== 'string') return undefined
  // Only this server writes records; properties that JSON omits are undefined again.
  const { name, scope, jwksUri, jwks, assertionAlgorithm, secretHash, ...rest } = record as Claims & Client
  return { ...rest, name, scope, jwksUri, jwks, assertionAlgorithm, secretHash }
}
