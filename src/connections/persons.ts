import { displayNameOf, type PersonLogins } from '../authserver/index.ts'
import { readJsonObject } from '../http/index.ts'
import { type Connections, upstreamOfLogin } from '../resources/index.ts'
import { createSealedRecords, type Seal, type Store } from '../storage/index.ts'
import { createUpstream, type Upstream, type UpstreamDeps, type UpstreamLeg } from '../upstreams/index.ts'
import type { Owner } from './owner.ts'
import type { Match } from './tickets.ts'

/** What a login proved. */
export interface ProvenPerson {
  readonly claims: Readonly<Record<string, unknown>>
  /** Name to show. */
  readonly name: string
}

/** An issuer of callers at which people log in. Throws what `Upstream` throws. */
export interface PersonLogin {
  readonly issuer: string
  readonly match: readonly string[]
  /** Where a browser proves that these are the person's claims; undefined: whatever they are. */
  at(match: Match): Pick<Upstream, 'authorizationUrl'>
  finish(leg: UpstreamLeg, callback: URLSearchParams): Promise<ProvenPerson>
  close(): Promise<void>
}

/** The login of an entry of `connections.login`. */
export function loginAt(entry: Connections['login'][number], deps: UpstreamDeps): PersonLogin {
  const upstream = createUpstream(upstreamOfLogin(entry), deps)
  return {
    issuer: entry.issuerUrl,
    match: entry.match,
    at: () => upstream,
    async finish(leg, callback) {
      const { tokens, claims, subject } = await upstream.finish(leg, callback)
      // Of the verified ID token only: user info is not signed.
      const payload = tokens.idToken?.reveal().split('.')[1] ?? ''
      const signed = readJsonObject(Buffer.from(payload, 'base64url')) ?? {}
      return { claims: signed, name: displayNameOf(claims) ?? subject }
    },
    close: () => upstream.close(),
  }
}

/** The login at an embedded authorization server, which needs no entry (connections.md §3.1). */
export const embeddedLogin = (issuer: string, persons: PersonLogins): PersonLogin => ({
  issuer,
  match: ['sub'],
  at(match) {
    const subject = match?.['sub']
    const wanted = typeof subject === 'string' ? { subject } : {}
    return {
      authorizationUrl: ({ state, redirectUri }) =>
        Promise.resolve(persons.authorizationUrl({ state, redirectUri, ...wanted })),
    }
  },
  async finish(leg, callback) {
    const { subject, name } = await persons.finish(leg, callback)
    return { claims: { sub: subject }, name }
  },
  close: () => Promise.resolve(),
})

/** The claims of these names; undefined unless all are there. */
export function matchIn(names: readonly string[], claims: Readonly<Record<string, unknown>>): Match {
  const found: Record<string, string | number> = {}
  for (const name of names) {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined
    if ((typeof value !== 'string' || value === '') && typeof value !== 'number') return undefined
    found[name] = value
  }
  return found
}

/** Whether the ID token is of the person for whom the ticket was made: every claim must be equal. */
export function isPerson(match: Match, claims: Readonly<Record<string, unknown>>): boolean {
  const entries = Object.entries(match ?? {})
  return entries.length > 0 && entries.every(([name, value]) => Object.hasOwn(claims, name) && claims[name] === value)
}

/** The identities under which a person connected accounts, found by the claims that the person proves in the browser. */
export interface Persons {
  /** Remembers that a caller with these claims is this owner. */
  note(match: Match, owner: Owner): Promise<void>
  /** The owners with these claims at an issuer. */
  find(issuer: string, match: Match): Promise<readonly Owner[]>
}

const KEPT_MS = 360 * 86_400_000
const MOST_IDENTITIES = 10
const TRIES = 8

export function createPersons(store: Store, seal: Seal): Persons {
  const records = createSealedRecords(seal)
  const keysOf = (issuer: string, match: Match): readonly string[] =>
    seal
      .lookupKeys(
        'person',
        JSON.stringify([issuer, Object.entries(match ?? {}).toSorted(([one], [other]) => (one < other ? -1 : 1))]),
      )
      .map((lookup) => `person:${lookup}`)
  const read = async (issuer: string, match: Match): Promise<readonly string[]> => {
    for (const key of keysOf(issuer, match)) {
      const found = await records.read<readonly string[]>(key, await store.get(key))
      if (found !== undefined) return found
    }
    return []
  }
  return {
    async note(match, { issuer, identity }) {
      const [key = ''] = keysOf(issuer, match)
      for (let tries = 0; tries < TRIES; tries++) {
        const known = await read(issuer, match)
        const stored = await store.get(key)
        const next = [identity, ...known.filter((one) => one !== identity)].slice(0, MOST_IDENTITIES)
        if (await store.compareAndSet(key, stored?.version, records.write(key, next), KEPT_MS)) return
      }
    },
    find: async (issuer, match) => (await read(issuer, match)).map((identity) => ({ issuer, identity })),
  }
}
