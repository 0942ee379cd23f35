import { setTimeout as pause } from 'node:timers/promises'
import { createTtlLru } from '../cache/index.ts'
import { type Clock, Failure } from '../core/index.ts'
import { storeFailure } from '../authserver/index.ts'
import { createSealedRecords, type Seal, type Store } from '../storage/index.ts'
import type { ConnectionRef, Owner } from './owner.ts'

/** Where the tokens of a connection are: the id of its session. */
export interface Pointer {
  readonly id: string
  readonly createdAtMs: number
  /** Infinity: until it is revoked. */
  readonly endsAtMs: number
  /** Last use, to the hour; undefined before the first. */
  readonly usedAtMs?: number | undefined
}

/** A stored connection as operators see it. */
export interface ListedConnection {
  /** Keyed hash of the person. */
  readonly caller: string
  readonly provider: string
  readonly state: 'connected' | 'broken'
}

/**
 * The current connections of each person: one sealed record per person, found by a keyed hash, and an index of all
 * connections with keyed hashes of people (connections.md §4). All methods throw `store_unavailable`.
 */
export interface Pointers {
  /** From the cache of this process only. */
  cached(ref: ConnectionRef): Pointer | undefined
  find(ref: ConnectionRef): Promise<Pointer | undefined>
  /** The keyed hash of the person, and the connections by provider. */
  ofOwner(owner: Owner): Promise<{ readonly caller: string; readonly pointers: ReadonlyMap<string, Pointer> }>
  /** Throws `connections_full` if the person can't have one more, or all people together can't. */
  checkRoom(ref: ConnectionRef): Promise<void>
  /**
   * Replaces the pointer; returns the previous one. Exactly one of concurrent replacements is last. Throws
   * `connections_full`, and changes nothing then.
   */
  replace(ref: ConnectionRef, pointer: Pointer): Promise<Pointer | undefined>
  /** Deletes the pointer; returns it. */
  remove(ref: ConnectionRef): Promise<Pointer | undefined>
  /**
   * Lists the connection as broken, and frees its place. The pointer remains, to tell the person. False if this is not
   * the person's connection any more.
   */
  markBroken(ref: ConnectionRef, id: string): Promise<boolean>
  /** Stores the time of a use, at most once an hour; never rejects. */
  noteUse(ref: ConnectionRef, id: string): Promise<void>
  /** All connections; approximate while they change. */
  list(): Promise<readonly ListedConnection[]>
  /** Removes the pointer to this session from the cache. */
  forget(ref: ConnectionRef, id: string): void
}

/** Bounds of stored connections (connections.md §4). */
export const MOST_CONNECTIONS = 100_000
export const MOST_PER_PERSON = 100
/** Places for connections that replace one: both exist for a moment. */
const REPLACEMENTS = 1_000
/** The store keeps no key for longer; a record in use is written again in time. */
const KEPT_MS = 360 * 86_400_000
/** A person without connections. */
const EMPTY_KEPT_MS = 60_000
const USED_MS = 3_600_000
const TRIES = 8
/** Concurrent changes of one person are spread over this time. */
const PAUSE_MS = 20
/** Members per request to the store. */
const PAGE = 5_000
const ALL_FULL = `there are ${MOST_CONNECTIONS} connections, the limit`
const CONNECTED = 'connections'
const BROKEN = 'connections-broken'
const MARK = Buffer.from('1')
/** Characters of a keyed hash in the index: 132 bits. */
const HASH_CHARACTERS = 22

interface PersonRecord {
  /** The same after a rotation of the key, unlike the key of the record. */
  readonly caller: string
  readonly connections: Readonly<Record<string, Pointer>>
}

const memberOf = (caller: string, provider: string, id: string): string => `connection:${caller}:${provider}:${id}`
const brokenOf = (member: string): string => `broken-${member}`

export function createPointers(
  store: Store,
  seal: Seal,
  { clock, maxEntries }: { readonly clock: Clock; readonly maxEntries: number },
): Pointers {
  const records = createSealedRecords(seal)
  const cache = createTtlLru<Pointer>({ clock, maxEntries })
  const lifeOf = ({ endsAtMs }: Pointer): number => Math.min(KEPT_MS, Math.max(1, Math.ceil(endsAtMs - clock.now())))

  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw storeFailure(error)
    }
  }
  const remember = (ref: ConnectionRef, pointer: Pointer): Pointer => {
    cache.set(ref.name, pointer, clock.now() + KEPT_MS)
    return pointer
  }

  const open = async (key: string) => {
    const stored = await store.get(key)
    const opened = await records.open<PersonRecord>(key, stored)
    if (stored === undefined || opened === undefined) return undefined
    const { caller, connections } = opened.record
    // JSON has no Infinity.
    const pointers = Object.entries(connections).map(
      ([provider, pointer]) => [provider, { ...pointer, endsAtMs: pointer.endsAtMs ?? Infinity }] as const,
    )
    const record: PersonRecord = { caller, connections: Object.fromEntries(pointers) }
    const isDue = !opened.isCurrent || (pointers.length > 0 && stored.leftMs <= KEPT_MS / 2)
    return { key, version: stored.version, record, isDue }
  }
  const write = (key: string, version: string | undefined, record: PersonRecord): Promise<boolean> => {
    const keptMs = Object.keys(record.connections).length === 0 ? EMPTY_KEPT_MS : KEPT_MS
    return store.compareAndSet(key, version, records.write(key, record), keptMs)
  }

  /** The record of a person; written again if it is due, under the key of the first sealing secret. */
  const read = async ({ issuer, identity }: Owner) => {
    const lookups = seal.lookupKeys('connections', JSON.stringify([issuer, identity]))
    const [first = '', ...older] = lookups.map((lookup) => `connections:${lookup}`)
    for (const key of [first, ...older]) {
      const found = await open(key)
      if (found === undefined) continue
      const { record, version, isDue } = found
      if (key === first && !isDue) return found
      for (const [provider, pointer] of Object.entries(record.connections))
        await store.touch(CONNECTED, memberOf(record.caller, provider, pointer.id), lifeOf(pointer))
      if (key === first) await write(first, version, record)
      else if (await write(first, undefined, record)) await store.delete(key)
      const moved = await open(first)
      if (moved !== undefined) return moved
    }
    const record: PersonRecord = { caller: lookups[0]?.slice(0, HASH_CHARACTERS) ?? '', connections: {} }
    return { key: first, version: undefined, record }
  }

  /** Changes the record until no other replica interferes; undefined from `next` changes nothing. */
  const change = async <T>(
    owner: Owner,
    next: (
      record: PersonRecord,
    ) => { readonly connections: PersonRecord['connections']; readonly result: T } | undefined,
  ): Promise<{ readonly caller: string; readonly result: T } | undefined> => {
    for (let tries = 0; tries < TRIES; tries++) {
      const { key, version, record } = await read(owner)
      const changed = next(record)
      if (changed === undefined) return undefined
      const { connections, result } = changed
      if (await write(key, version, { ...record, connections })) return { caller: record.caller, result }
      await pause(Math.random() * PAUSE_MS * tries)
    }
    throw new Failure('store_unavailable', { detail: 'the connections change too often', retryAfterSeconds: 1 })
  }

  const free = async (caller: string, provider: string, id: string): Promise<void> => {
    const member = memberOf(caller, provider, id)
    await Promise.all([store.remove(CONNECTED, member), store.remove(BROKEN, brokenOf(member))])
  }
  const full = (detail: string): Failure => new Failure('connections_full', { detail })
  /** The connections of a person that have not expired, but for those at `provider`. */
  const othersIn = ({ connections }: PersonRecord, provider: string) => {
    const others = Object.entries(connections).filter(
      ([name, { endsAtMs }]) => name !== provider && endsAtMs > clock.now(),
    )
    if (others.length >= MOST_PER_PERSON) throw full(`this person has ${others.length} connections, the limit`)
    return others
  }
  const everyMember = async (collection: string): Promise<ReadonlySet<string>> => {
    const found = new Set<string>()
    for (;;) {
      const page = await store.members(collection, found.size, PAGE)
      const before = found.size
      for (const member of page) found.add(member)
      if (page.length < PAGE || found.size === before) return found
    }
  }

  return {
    cached: ({ name }) => cache.get(name),
    find: (ref) =>
      guarded(async () => {
        const found = (await read(ref.owner)).record.connections[ref.provider]
        return found && remember(ref, found)
      }),
    ofOwner: (owner) =>
      guarded(async () => {
        const { caller, connections } = (await read(owner)).record
        return { caller, pointers: new Map(Object.entries(connections)) }
      }),
    checkRoom: ({ owner, provider }) =>
      guarded(async () => {
        const { record } = await read(owner)
        if (Object.hasOwn(record.connections, provider)) return
        othersIn(record, provider)
        if ((await store.members(CONNECTED, MOST_CONNECTIONS - 1, 1)).length > 0) throw full(ALL_FULL)
      }),
    replace: (ref, pointer) =>
      guarded(async () => {
        const { owner, provider } = ref
        const { record } = await read(owner)
        const { caller } = record
        const isNew = !Object.hasOwn(record.connections, provider)
        const member = memberOf(caller, provider, pointer.id)
        const members = MOST_CONNECTIONS + (isNew ? 0 : REPLACEMENTS)
        const bound = { members, bytes: members * MARK.length, evicts: false }
        const { outcome } = await store.admit(CONNECTED, member, MARK, lifeOf(pointer), bound)
        if (outcome === 'full') throw full(ALL_FULL)
        try {
          const changed = await change(owner, (now) => ({
            connections: { ...Object.fromEntries(othersIn(now, provider)), [provider]: pointer },
            result: now.connections[provider],
          }))
          const before = changed?.result
          if (before !== undefined) await free(caller, provider, before.id)
          remember(ref, pointer)
          return before
        } catch (error) {
          await store.remove(CONNECTED, member).catch(() => undefined)
          throw error
        }
      }),
    remove: ({ owner, provider, name }) =>
      guarded(async () => {
        const changed = await change(owner, ({ connections: { [provider]: result, ...connections } }) =>
          result === undefined ? undefined : { connections, result },
        )
        cache.delete(name)
        if (changed !== undefined) await free(changed.caller, provider, changed.result.id)
        return changed?.result
      }),
    markBroken: ({ owner, provider }, id) =>
      guarded(async () => {
        const { caller, connections } = (await read(owner)).record
        const pointer = connections[provider]
        if (pointer?.id !== id) return false
        const member = memberOf(caller, provider, id)
        const bound = { members: MOST_CONNECTIONS, bytes: MOST_CONNECTIONS * MARK.length }
        await store.admit(BROKEN, brokenOf(member), MARK, lifeOf(pointer), bound)
        await store.remove(CONNECTED, member)
        return true
      }),
    async noteUse(ref, id) {
      const nowMs = clock.now()
      const isDue = ({ usedAtMs = -Infinity }: Pointer) => nowMs - usedAtMs >= USED_MS
      const known = cache.get(ref.name)
      if (known?.id !== id || !isDue(known)) return
      remember(ref, { ...known, usedAtMs: nowMs })
      await change(ref.owner, ({ connections }) => {
        const pointer = connections[ref.provider]
        if (pointer?.id !== id || !isDue(pointer)) return undefined
        return { connections: { ...connections, [ref.provider]: { ...pointer, usedAtMs: nowMs } }, result: undefined }
      }).catch(() => undefined)
    },
    list: () =>
      guarded(async () => {
        const [connected, broken] = [await everyMember(CONNECTED), await everyMember(BROKEN)]
        const listed = (member: string, state: ListedConnection['state']): ListedConnection => {
          const [, caller = '', provider = ''] = member.split(':')
          return { caller, provider, state }
        }
        return [
          ...[...connected].map((member) => listed(member, 'connected')),
          ...[...broken].map((member) => listed(member, 'broken')),
        ]
      }),
    forget({ name }, id) {
      if (cache.peek(name)?.id === id) cache.delete(name)
    },
  }
}
