import { randomBytes } from 'node:crypto'
import { createPauses } from '../cache/index.ts'
import { createSessionCounters, createTokenSessions, type RevocationOutcome } from '../authserver/index.ts'
import {
  asFailure,
  type Caller,
  type Clock,
  type ConnectedAccounts,
  type ConnectionProblem,
  Failure,
  type Log,
  type Metrics,
  type UpstreamToken,
} from '../core/index.ts'
import { type ConnectionProvider, maxAgeMs } from '../resources/index.ts'
import type { Seal, Store } from '../storage/index.ts'
import type { Upstream, UpstreamLogin } from '../upstreams/index.ts'
import type { ApiKeys } from './api-keys.ts'
import type { ConnectionAudit } from './audit.ts'
import { type ConnectionRef, connectionRef, type Owner, ownerOf } from './owner.ts'
import { createPointers, type ListedConnection, MOST_CONNECTIONS, type Pointer } from './pointers.ts'

export interface AccountsOptions {
  readonly providers: readonly ConnectionProvider[]
  /** Those of types `oidc` and `oauth2`, by name. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** Those of type `secret`, by name. */
  readonly keys: ReadonlyMap<string, Pick<ApiKeys, 'accepts'>>
  readonly isSingleUser: boolean
  readonly audit: ConnectionAudit
  readonly store: Store
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/** A person's connection without its credential. */
export interface ConnectionInfo {
  readonly provider: string
  /** Name of the account, if the provider told it. */
  readonly account: string | undefined
  readonly scopes: readonly string[]
  readonly createdAtMs: number
  /** Last use, to the hour; undefined before the first. */
  readonly usedAtMs: number | undefined
  /** Infinity: until it is revoked. */
  readonly endsAtMs: number
  /** The provider ended it, or rejected its credential. */
  readonly isBroken: boolean
}

/** `unsupported`: the provider has no endpoint for it. */
export type TestOutcome = 'accepted' | 'rejected' | 'unsupported'

/** The connections of all people. Methods throw `store_unavailable`. */
export interface Accounts extends ConnectedAccounts {
  /**
   * Stores the result of a login at a provider, replacing the person's connection there. `prompt`: id of the link that
   * was used. Throws `connections_full`.
   */
  connect(owner: Owner, provider: string, login: UpstreamLogin, prompt: string): Promise<'connected' | 'replaced'>
  /** Throws `connections_full` if the person can't connect an account at this provider. */
  checkRoom(owner: Owner, provider: string): Promise<void>
  /**
   * Deletes the connection on all replicas within 2 s, and revokes its tokens; `revocation` has the outcome, which the audit
   * trail gets with `by` and `requestId`. Undefined without a connection.
   */
  disconnect(
    owner: Owner,
    provider: string,
    source: { readonly by: 'person' | 'operator'; readonly requestId?: string | undefined },
  ): Promise<{ readonly revocation: Promise<RevocationOutcome | 'nothing'> } | undefined>
  /** Sends one request with the credential to the provider. Throws `not_connected` and the errors of the request. */
  test(owner: Owner, provider: string): Promise<TestOutcome>
  /** Whether `test` has an endpoint at this provider, as far as the configuration says. */
  isTestable(provider: string): boolean
  /** A person's connections, and the person's keyed hash. */
  infos(owner: Owner): Promise<{ readonly caller: string; readonly connections: readonly ConnectionInfo[] }>
  /** All connections; approximate while they change. */
  list(): Promise<readonly ListedConnection[]>
  isConnected(caller: Caller, provider: string): Promise<boolean>
  onConnected(caller: Caller, provider: string, listener: (prompt: string) => void): () => void
  opened(): Promise<void>
  /** True while connections can be used; throws `store_unavailable`. */
  check(): void
  close(): Promise<void>
}

/** Connections are read again after this time, so that no replica uses a credential that was deleted meanwhile. */
const CACHED_MS = 3_600_000
/** Replicas that were cut off from the store for longer have read every connection again. */
const KEEP_ENDED_MS = 24 * 3_600_000
/** Within this time, a second 401 breaks a key. */
const KEY_REFUSAL_MS = 60_000
const MOST_REFUSALS = 10_000
const MOST_LEFT_OVER = 1000
const CHANNEL = 'connected'
/** Claims that name an account, the best first. */
const ACCOUNT_CLAIMS = ['preferred_username', 'login', 'email', 'name'] as const

const notConnected = (provider: string, problem: ConnectionProblem, detail: string): Failure =>
  new Failure('not_connected', { detail, connection: { provider, problem } })

/** One `UpstreamSession` per connection, and a pointer to it (connections.md §4). */
export function createAccounts(options: AccountsOptions): Accounts {
  const { providers, upstreams, keys, isSingleUser, audit, store, seal, clock, log, metrics } = options
  const byName = new Map(providers.map((provider) => [provider.name, provider]))
  const counter = metrics.counter('extauth_connections_total', 'Connected accounts, by event.', ['provider', 'event'])
  const count = (provider: string, event: 'connected' | 'disconnected' | 'replaced' | 'broken'): void =>
    counter.with(provider, event).add()
  const pointers = createPointers(store, seal, { clock, maxEntries: MOST_CONNECTIONS })
  const sessions = createTokenSessions({
    upstreams,
    claimNames: ACCOUNT_CLAIMS,
    keepEndedMs: KEEP_ENDED_MS,
    store,
    seal,
    clock,
    log,
    count: { refresh: createSessionCounters(metrics).refresh, session: () => undefined },
    maxLiveSessions: MOST_CONNECTIONS,
    maxCachedMs: CACHED_MS,
    onRejected: (id) =>
      void noteBroken(inUse.get(id), id, rejecting.has(id) ? 'rejected_by_backend' : 'ended_by_provider'),
  })
  const { tokens, ended, records } = sessions
  const keyRefusals = createPauses<true>({ clock, maxEntries: MOST_REFUSALS })
  /** Sessions whose token a backend rejected just now. */
  const rejecting = new Set<string>()
  /** The connections whose tokens are read or refreshed just now, by id of the session. */
  const inUse = new Map<string, ConnectionRef>()
  // A caller object lives as long as its token is cached.
  const refs = new WeakMap<Caller, Map<string, ConnectionRef>>()
  const refFor = (caller: Caller, provider: string): ConnectionRef => {
    const known = refs.get(caller) ?? new Map<string, ConnectionRef>()
    refs.set(caller, known)
    const ref = known.get(provider) ?? connectionRef(ownerOf(caller, isSingleUser), provider)
    known.set(provider, ref)
    return ref
  }
  const ownedBy =
    ({ name }: ConnectionRef) =>
    ({ subject }: { readonly subject: string }): void => {
      if (subject !== name) throw new Failure('internal_error', { detail: 'a connection of another person' })
    }

  const noteBroken = async (
    ref: ConnectionRef | undefined,
    id: string,
    cause: 'rejected_by_backend' | 'ended_by_provider',
  ): Promise<void> => {
    if (ref === undefined) return
    const { owner, provider } = ref
    const isCurrent = await pointers.markBroken(ref, id).catch((error: unknown) => {
      log.warn({ provider, reason: asFailure(error).code }, 'listing a broken connection failed')
      return true
    })
    // It was replaced or disconnected meanwhile.
    if (!isCurrent) return
    count(provider, 'broken')
    log.info({ provider, cause }, 'connection broken')
    audit({ type: 'account_broken', outcome: 'failure', owner, provider, details: { cause } })
  }

  /** Runs `use` with the id of the connection; once more if another replica replaced it meanwhile. */
  const withSession = async <T>(ref: ConnectionRef, use: (id: string) => Promise<T>): Promise<T> => {
    const { provider } = ref
    let known = pointers.cached(ref)
    for (;;) {
      const pointer: Pointer | undefined = known ?? (await pointers.find(ref))
      if (pointer === undefined) throw notConnected(provider, 'missing', 'there is no such connection')
      try {
        if (ended.has(pointer.id)) throw new Failure('no_session', { detail: 'the connection has ended' })
        inUse.set(pointer.id, ref)
        return await use(pointer.id)
      } catch (error) {
        const { code, detail } = asFailure(error)
        if (code !== 'no_session') throw error
        pointers.forget(ref, pointer.id)
        if (known === undefined) throw notConnected(provider, 'ended', detail ?? 'the connection has ended')
        known = undefined
      } finally {
        inUse.delete(pointer.id)
      }
    }
  }

  /** A token that is not cached. Connections in use come here every hour, which is the time of use to store. */
  const load = (ref: ConnectionRef, kind: 'access_token' | 'id_token'): Promise<UpstreamToken> =>
    withSession(ref, async (id) => {
      const token = await tokens.current(id, ref.provider, kind, ownedBy(ref))
      void pointers.noteUse(ref, id)
      return token
    })

  const broken = async (ref: ConnectionRef, id: string): Promise<false> => {
    if (ended.hasLearned(id)) return false
    void noteBroken(ref, id, 'rejected_by_backend')
    await sessions.lose(id)
    return false
  }

  const current: Accounts['current'] = (caller, provider, kind) => {
    const ref = refFor(caller, provider)
    const pointer = pointers.cached(ref)
    const live =
      pointer === undefined || ended.hasLearned(pointer.id)
        ? undefined
        : tokens.cached(pointer.id, provider, kind, ownedBy(ref))
    return live ?? load(ref, kind)
  }

  // Sessions without a pointer, which could not be deleted while the store was down.
  const leftOver = new Set<string>()
  type Listener = (prompt: string) => void
  const listeners = new Map<string, Set<Listener>>()
  const checks = new Map<Listener, () => Promise<boolean>>()
  const subscription = store.subscribe(CHANNEL, {
    onMessage(message) {
      const [lookup = '', prompt = ''] = message.split(' ')
      for (const listener of listeners.get(lookup) ?? []) listener(prompt)
    },
    // Messages may be lost, and with them the ids of links.
    onGap() {
      for (const id of leftOver)
        sessions.lose(id).then(
          () => leftOver.delete(id),
          () => undefined,
        )
      for (const [listener, isDone] of checks)
        isDone().then(
          (done) => done && listener(''),
          () => undefined,
        )
    },
  })

  const isConnected: Accounts['isConnected'] = async (caller, provider) => {
    try {
      await current(caller, provider, 'access_token')
      return true
    } catch (error) {
      const { code } = asFailure(error)
      if (code === 'store_unavailable') throw error
      // A provider that can't be reached has ended nothing.
      return code !== 'not_connected'
    }
  }

  return {
    current,
    isConnected,
    reject(caller, provider, refused) {
      const ref = refFor(caller, provider)
      return withSession(ref, async (id) => {
        if (byName.get(provider)?.type === 'secret') {
          const held = await tokens.held(id, provider, ownedBy(ref))
          if (!held.accessToken.equals(refused.token)) return true
          if (keyRefusals.get(id) !== undefined) return broken(ref, id)
          keyRefusals.set(id, true, KEY_REFUSAL_MS)
          return true
        }
        rejecting.add(id)
        try {
          return (await tokens.reject(id, provider, refused, ownedBy(ref))) || (await broken(ref, id))
        } catch (error) {
          if (asFailure(error).code !== 'no_session') throw error
          return broken(ref, id)
        } finally {
          rejecting.delete(id)
        }
      }).catch((error: unknown) => {
        if (asFailure(error).code === 'not_connected') return false
        throw error
      })
    },
    async widen(caller, provider, scopes) {
      const ref = refFor(caller, provider)
      const held = await withSession(ref, (id) => tokens.held(id, provider, ownedBy(ref)))
      throw new Failure('not_connected', {
        detail: 'the backend requires more scopes',
        connection: { provider, problem: 'insufficient_scope', scopes: [...new Set([...held.scopes, ...scopes])] },
      })
    },
    keyParts(caller, provider) {
      const ref = refFor(caller, provider)
      const pointer = pointers.cached(ref)
      if (
        pointer !== undefined &&
        !ended.hasLearned(pointer.id) &&
        tokens.cached(pointer.id, provider, 'access_token', ownedBy(ref)) !== undefined
      )
        return [provider, pointer.id]
      return withSession(ref, async (id) => {
        await tokens.current(id, provider, 'access_token', ownedBy(ref))
        return [provider, id]
      })
    },
    async connect(owner, provider, login, prompt) {
      const ref = connectionRef(owner, provider)
      const id = randomBytes(16).toString('base64url')
      const nowMs = clock.now()
      const endsAtMs = nowMs + maxAgeMs(byName.get(provider) ?? unknownProvider(provider))
      await sessions.create({
        tsid: id,
        subject: ref.name,
        clientId: '',
        firstProvider: provider,
        resource: '',
        endsAtMs: Math.min(Number.MAX_SAFE_INTEGER, endsAtMs),
      })
      let before: Pointer | undefined
      try {
        await sessions.addLeg(id, provider, login)
        before = await pointers.replace(ref, { id, createdAtMs: nowMs, endsAtMs })
      } catch (error) {
        await sessions.lose(id).catch(() => void (leftOver.size < MOST_LEFT_OVER && leftOver.add(id)))
        throw error
      }
      count(provider, 'connected')
      if (before !== undefined) {
        count(provider, 'replaced')
        // Not revoked: some providers would revoke the new grant with it.
        await sessions.lose(before.id)
      }
      // A replica that misses the message sees the connection with the next request.
      await store.publish(CHANNEL, `${seal.lookupKey('connection', ref.name)} ${prompt}`).catch(() => undefined)
      return before === undefined ? 'connected' : 'replaced'
    },
    checkRoom: (owner, provider) => pointers.checkRoom(connectionRef(owner, provider)),
    async disconnect(owner, provider, { by, requestId }) {
      const pointer = await pointers.remove(connectionRef(owner, provider))
      if (pointer === undefined) return undefined
      count(provider, 'disconnected')
      const ended = await sessions.end(pointer.id)
      // Not awaited here: a provider may take seconds.
      const revocation = ended.revocation.then((outcomes) => {
        const outcome = outcomes.get(provider) ?? 'nothing'
        const details = { by, revocation: outcome }
        audit({ type: 'account_disconnected', outcome: 'success', requestId, owner, provider, details })
        return outcome
      })
      return { revocation }
    },
    async test(owner, provider) {
      const ref = connectionRef(owner, provider)
      const held = await withSession(ref, async (id) => {
        await tokens.current(id, provider, 'access_token', ownedBy(ref))
        return tokens.held(id, provider, ownedBy(ref))
      })
      const isAccepted = await (keys.get(provider)?.accepts(held.accessToken) ??
        upstreams.get(provider)?.accepts?.(held))
      return isAccepted === undefined ? 'unsupported' : isAccepted ? 'accepted' : 'rejected'
    },
    isTestable: (provider) =>
      upstreams.get(provider)?.accepts !== undefined || byName.get(provider)?.secret?.test !== undefined,
    async infos(owner) {
      const { caller, pointers: owned } = await pointers.ofOwner(owner)
      const connections = [...owned].map(async ([provider, pointer]): Promise<ConnectionInfo> => {
        const { id, createdAtMs, usedAtMs, endsAtMs } = pointer
        const record = (await records.load(id))?.record
        const held = record?.providers.get(provider)
        const account = ACCOUNT_CLAIMS.map((claim) => record?.claims[claim]).find(
          (value) => typeof value === 'string' && value !== '',
        )
        return {
          provider,
          account: typeof account === 'string' ? account : undefined,
          scopes: held?.scopes ?? [],
          createdAtMs,
          usedAtMs,
          endsAtMs,
          isBroken: held === undefined || ended.hasLearned(id),
        }
      })
      return { caller, connections: await Promise.all(connections) }
    },
    list: () => pointers.list(),
    onConnected(caller, provider, listener) {
      const lookups = seal.lookupKeys('connection', refFor(caller, provider).name)
      // One listener may wait for several connections.
      const own: Listener = (prompt) => listener(prompt)
      for (const lookup of lookups) listeners.set(lookup, (listeners.get(lookup) ?? new Set()).add(own))
      checks.set(own, () => isConnected(caller, provider))
      return () => {
        checks.delete(own)
        for (const lookup of lookups) {
          const waiting = listeners.get(lookup)
          waiting?.delete(own)
          if (waiting?.size === 0) listeners.delete(lookup)
        }
      }
    },
    opened: () => ended.opened(),
    check: () => void ended.has(''),
    async close() {
      subscription.close()
      await sessions.close()
    },
  }
}

function unknownProvider(provider: string): never {
  throw new Failure('config_error', { detail: `there is no connection provider ${provider}` })
}
