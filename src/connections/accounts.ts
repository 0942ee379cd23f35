import { randomBytes } from 'node:crypto'
import { createPauses } from '../cache/index.ts'
import { createSessionCounters, createTokenSessions } from '../authserver/index.ts'
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
import { connectionName, type Owner, ownerOf } from './owner.ts'
import { createPointers, type Pointer } from './pointers.ts'

export interface AccountsOptions {
  readonly providers: readonly ConnectionProvider[]
  /** Those of types `oidc` and `oauth2`, by name. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly isSingleUser: boolean
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
  /** Infinity: until it is revoked. */
  readonly endsAtMs: number
  /** The provider ended it, or rejected its credential. */
  readonly isBroken: boolean
}

/** The connections of all people. Methods throw `store_unavailable`. */
export interface Accounts extends ConnectedAccounts {
  /**
   * Stores the result of a login at a provider, replacing the person's connection there. `prompt`: id of the link that
   * was used.
   */
  connect(owner: Owner, provider: string, login: UpstreamLogin, prompt: string): Promise<void>
  /** Deletes the connection on all replicas within 2 s, and revokes its tokens. False without a connection. */
  disconnect(owner: Owner, provider: string): Promise<boolean>
  /** Undefined without a connection. */
  info(owner: Owner, provider: string): Promise<ConnectionInfo | undefined>
  isConnected(caller: Caller, provider: string): Promise<boolean>
  onConnected(caller: Caller, provider: string, listener: (prompt: string) => void): () => void
  opened(): Promise<void>
  /** True while connections can be used; throws `store_unavailable`. */
  check(): void
  close(): Promise<void>
}

/** Bound of connections with tokens in memory (connections.md §4). */
const MOST_LIVE = 100_000
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
  const { providers, isSingleUser, store, seal, clock, log, metrics } = options
  const byName = new Map(providers.map((provider) => [provider.name, provider]))
  const counter = metrics.counter('extauth_connections_total', 'Connected accounts, by event.', ['provider', 'event'])
  const count = (provider: string, event: 'connected' | 'disconnected' | 'replaced' | 'broken'): void =>
    counter.with(provider, event).add()
  const pointers = createPointers(store, seal, { clock, maxEntries: MOST_LIVE })
  const sessions = createTokenSessions({
    upstreams: options.upstreams,
    claimNames: ACCOUNT_CLAIMS,
    keepEndedMs: KEEP_ENDED_MS,
    store,
    seal,
    clock,
    log,
    count: { refresh: createSessionCounters(metrics).refresh, session: () => undefined },
    maxLiveSessions: MOST_LIVE,
    maxCachedMs: CACHED_MS,
  })
  const { tokens, ended, records } = sessions
  const keyRefusals = createPauses<true>({ clock, maxEntries: MOST_REFUSALS })
  // A caller object lives as long as its token is cached.
  const names = new WeakMap<Caller, Map<string, string>>()
  const nameFor = (caller: Caller, provider: string): string => {
    const known = names.get(caller) ?? new Map<string, string>()
    names.set(caller, known)
    const name = known.get(provider) ?? connectionName(ownerOf(caller, isSingleUser), provider)
    known.set(provider, name)
    return name
  }
  const ownedBy =
    (name: string) =>
    ({ subject }: { readonly subject: string }): void => {
      if (subject !== name) throw new Failure('internal_error', { detail: 'a connection of another person' })
    }

  /** Runs `use` with the id of the connection; once more if another replica replaced it meanwhile. */
  const withSession = async <T>(name: string, provider: string, use: (id: string) => Promise<T>): Promise<T> => {
    let known = pointers.cached(name)
    for (;;) {
      const pointer: Pointer | undefined = known ?? (await pointers.find(name))
      if (pointer === undefined) throw notConnected(provider, 'missing', 'there is no such connection')
      try {
        if (ended.has(pointer.id)) throw new Failure('no_session', { detail: 'the connection has ended' })
        return await use(pointer.id)
      } catch (error) {
        const { code, detail } = asFailure(error)
        if (code !== 'no_session') throw error
        pointers.forget(name, pointer.id)
        if (known === undefined) throw notConnected(provider, 'ended', detail ?? 'the connection has ended')
        known = undefined
      }
    }
  }

  const load = (name: string, provider: string, kind: 'access_token' | 'id_token'): Promise<UpstreamToken> =>
    withSession(name, provider, (id) => tokens.current(id, provider, kind, ownedBy(name)))

  const broken = async (id: string, provider: string): Promise<false> => {
    count(provider, 'broken')
    if (!ended.hasLearned(id)) await sessions.lose(id)
    log.info({ provider }, 'connection broken: the credential was rejected')
    return false
  }

  const current: Accounts['current'] = (caller, provider, kind) => {
    const name = nameFor(caller, provider)
    const pointer = pointers.cached(name)
    const live =
      pointer === undefined || ended.hasLearned(pointer.id)
        ? undefined
        : tokens.cached(pointer.id, provider, kind, ownedBy(name))
    return live ?? load(name, provider, kind)
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
      const name = nameFor(caller, provider)
      return withSession(name, provider, async (id) => {
        if (byName.get(provider)?.type === 'secret') {
          const held = await tokens.held(id, provider, ownedBy(name))
          if (!held.accessToken.equals(refused.token)) return true
          if (keyRefusals.get(id) !== undefined) return broken(id, provider)
          keyRefusals.set(id, true, KEY_REFUSAL_MS)
          return true
        }
        try {
          return (await tokens.reject(id, provider, refused, ownedBy(name))) || (await broken(id, provider))
        } catch (error) {
          if (asFailure(error).code !== 'no_session') throw error
          return broken(id, provider)
        }
      }).catch((error: unknown) => {
        if (asFailure(error).code === 'not_connected') return false
        throw error
      })
    },
    async widen(caller, provider, scopes) {
      const name = nameFor(caller, provider)
      const held = await withSession(name, provider, (id) => tokens.held(id, provider, ownedBy(name)))
      throw new Failure('not_connected', {
        detail: 'the backend requires more scopes',
        connection: { provider, problem: 'insufficient_scope', scopes: [...new Set([...held.scopes, ...scopes])] },
      })
    },
    keyParts(caller, provider) {
      const name = nameFor(caller, provider)
      const pointer = pointers.cached(name)
      if (
        pointer !== undefined &&
        !ended.hasLearned(pointer.id) &&
        tokens.cached(pointer.id, provider, 'access_token', ownedBy(name)) !== undefined
      )
        return [provider, pointer.id]
      return withSession(name, provider, async (id) => {
        await tokens.current(id, provider, 'access_token', ownedBy(name))
        return [provider, id]
      })
    },
    async connect(owner, provider, login, prompt) {
      const name = connectionName(owner, provider)
      const id = randomBytes(16).toString('base64url')
      const nowMs = clock.now()
      const maxAge = maxAgeMs(byName.get(provider) ?? unknownProvider(provider))
      const endsAtMs = Math.min(Number.MAX_SAFE_INTEGER, nowMs + maxAge)
      await sessions.create({ tsid: id, subject: name, clientId: '', firstProvider: provider, resource: '', endsAtMs })
      let before: Pointer | undefined
      try {
        await sessions.addLeg(id, provider, login)
        before = await pointers.replace(name, { id, createdAtMs: nowMs })
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
      await store.publish(CHANNEL, `${seal.lookupKey('connection', name)} ${prompt}`).catch(() => undefined)
    },
    async disconnect(owner, provider) {
      const pointer = await pointers.remove(connectionName(owner, provider))
      if (pointer === undefined) return false
      count(provider, 'disconnected')
      await sessions.end(pointer.id)
      return true
    },
    async info(owner, provider) {
      const pointer = await pointers.find(connectionName(owner, provider))
      if (pointer === undefined) return undefined
      const record = (await records.load(pointer.id))?.record
      const held = record?.providers.get(provider)
      const account = ACCOUNT_CLAIMS.map((claim) => record?.claims[claim]).find(
        (value) => typeof value === 'string' && value !== '',
      )
      return {
        provider,
        account: typeof account === 'string' ? account : undefined,
        scopes: held?.scopes ?? [],
        createdAtMs: pointer.createdAtMs,
        endsAtMs: record === undefined || record.endsAtMs === Number.MAX_SAFE_INTEGER ? Infinity : record.endsAtMs,
        isBroken: held === undefined || ended.hasLearned(pointer.id),
      }
    },
    onConnected(caller, provider, listener) {
      const lookups = seal.lookupKeys('connection', nameFor(caller, provider))
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
