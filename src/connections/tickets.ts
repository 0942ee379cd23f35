import { randomBytes, randomUUID } from 'node:crypto'
import { createTtlLru } from '../cache/index.ts'
import { type Clock, type ConnectionNeed, Failure, type Metrics } from '../core/index.ts'
import { storeFailure } from '../authserver/index.ts'
import { createSealedRecords, type Seal, type Store } from '../storage/index.ts'
import { connectionName, type Owner } from './owner.ts'

/** The claims that the person must prove in the browser; undefined where the link itself is enough. */
export type Match = Readonly<Record<string, string | number>> | undefined

/** What a link is for. Only the store has it, sealed; the link has nothing but a random text. */
export interface Ticket extends ConnectionNeed {
  readonly owner: Owner
  readonly match: Match
  /** The route whose request led to the link. */
  readonly route: string
  /** Public id of the prompt. */
  readonly id: string
  readonly createdAtMs: number
  readonly expiresAtMs: number
}

/** A ticket with the text that stands for it in the link. */
export interface IssuedTicket {
  readonly text: string
  readonly ticket: Ticket
}

/** The links that have been created and not used (connections.md §3). Methods throw `store_unavailable`. */
export interface Tickets {
  /**
   * The live ticket of this person and need: the same one for a minute, on all replicas. Throws `rate_limited` for
   * more than ten new ones per minute, and `connections_full`.
   */
  issue(owner: Owner, match: Match, route: string, need: ConnectionNeed): Promise<IssuedTicket>
  /** Reads a ticket and leaves it. Undefined for one that was used, has expired, or never existed. */
  peek(text: string): Promise<Ticket | undefined>
  /** Reads and deletes a ticket: exactly one of concurrent requests gets it. */
  consume(text: string): Promise<Ticket | undefined>
}

const TICKET_MS = 10 * 60_000
const SAME_MS = 60_000
const MOST_PER_MINUTE = 10
const MOST_PERSONS = 20_000
/** 24 random bytes. */
const TEXT = /^[A-Za-z0-9_-]{32}$/

interface Prompt extends IssuedTicket {
  readonly untilMs: number
}

export interface TicketsOptions {
  readonly clock: Clock
  readonly metrics: Metrics
  /** Throws for a person who can't connect an account at this provider. */
  readonly checkRoom: (owner: Owner, provider: string) => Promise<void>
}

export function createTickets(store: Store, seal: Seal, { clock, metrics, checkRoom }: TicketsOptions): Tickets {
  const records = createSealedRecords(seal)
  const links = metrics.counter('extauth_connect_links_total', 'Links created for connecting an account.', ['provider'])
  const flights = new Map<string, Promise<IssuedTicket>>()
  const issued = createTtlLru<{ count: number }>({ clock, maxEntries: MOST_PERSONS })
  const ticketKeys = (text: string): readonly string[] => seal.lookupKeys('ticket', text).map((key) => `ticket:${key}`)

  /** Counts a new ticket of a person. */
  const admit = (owner: Owner): void => {
    const key = connectionName(owner, '')
    const known = issued.get(key)
    if (known === undefined) return void issued.set(key, { count: 1 }, clock.now() + SAME_MS)
    if (known.count >= MOST_PER_MINUTE)
      throw new Failure('rate_limited', {
        detail: 'more than ten links a minute for connecting accounts of one caller',
        retryAfterSeconds: SAME_MS / 1000,
      })
    known.count += 1
  }

  const promptOf = async (key: string): Promise<Prompt | undefined> => {
    const prompt = await records.read<Prompt>(key, await store.get(key))
    return prompt !== undefined && clock.now() < prompt.untilMs ? prompt : undefined
  }

  const make = async (name: string, owner: Owner, match: Match, route: string, need: ConnectionNeed) => {
    const promptKey = `prompt:${seal.lookupKey('prompt', name)}`
    const known = await promptOf(promptKey)
    if (known !== undefined) return known
    await checkRoom(owner, need.provider)
    admit(owner)
    const text = randomBytes(24).toString('base64url')
    const nowMs = clock.now()
    const times = { createdAtMs: nowMs, expiresAtMs: nowMs + TICKET_MS }
    const ticket: Ticket = { ...need, owner, match, route, id: randomUUID(), ...times }
    const [key = ''] = ticketKeys(text)
    await store.put(key, records.write(key, { ...ticket, promptKey }), TICKET_MS)
    const prompt: Prompt = { text, ticket, untilMs: nowMs + SAME_MS }
    if (!(await store.putIfAbsent(promptKey, records.write(promptKey, prompt), SAME_MS))) {
      const other = await promptOf(promptKey)
      if (other !== undefined) {
        // Another replica was first.
        await store.delete(key)
        return other
      }
      await store.put(promptKey, records.write(promptKey, prompt), SAME_MS)
    }
    links.with(need.provider).add()
    return prompt
  }

  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw storeFailure(error)
    }
  }
  const live = (ticket: Ticket | undefined): Ticket | undefined =>
    ticket !== undefined && clock.now() < ticket.expiresAtMs ? ticket : undefined

  return {
    issue(owner, match, route, need) {
      const scopes = [...(need.scopes ?? [])].sort()
      const name = JSON.stringify([connectionName(owner, need.provider), scopes])
      const flight =
        flights.get(name) ?? guarded(() => make(name, owner, match, route, need)).finally(() => flights.delete(name))
      flights.set(name, flight)
      return flight
    },
    peek: (text) =>
      guarded(async () => {
        if (!TEXT.test(text)) return undefined
        for (const key of ticketKeys(text)) {
          const found = live(await records.read<Ticket>(key, await store.get(key)))
          if (found !== undefined) return found
        }
        return undefined
      }),
    consume: (text) =>
      guarded(async () => {
        if (!TEXT.test(text)) return undefined
        for (const key of ticketKeys(text)) {
          const found = await records.read<Ticket & { readonly promptKey: string }>(key, await store.take(key))
          if (found === undefined) continue
          // The next prompt gets a new link.
          await store.delete(found.promptKey)
          return live(found)
        }
        return undefined
      }),
  }
}
