import { createHash } from 'node:crypto'
import { hashKey } from '../../cache/index.ts'
import type { Clock } from '../../core/index.ts'
import { StoreError, type Seal } from '../../storage/index.ts'
import { portless, redirectKind } from '../clients/redirect-uri.ts'
import { cookieName, setCookie } from './browser.ts'
import type { LoginRequest } from './login-request.ts'

/** Lifetime of stored consent. */
const REMEMBERED_MS = 30 * 24 * 3_600_000
/** As many as fit into a cookie of 4 KiB. */
const MOST_ENTRIES = 36

/** Consented request, subject (short hashes), time (seconds since the epoch), and client with redirect. */
type Entry = readonly [what: string, who: string, atSeconds: number, client?: string]

/**
 * Stored consent of this browser (authserver.md §4.1): per client, redirect URI, scopes and resource, in a sealed
 * cookie; the server stores nothing. Consent for loopback and private-use clients, which any program on the device
 * can impersonate, ends with the browser session.
 */
export interface StoredConsents {
  /** The subject (short hash) who consented to this; undefined without consent in this browser. */
  find(request: LoginRequest, cookies: ReadonlyMap<string, string>, origin: string): Promise<string | undefined>
  /** Whether any user consented to anything for this client at this redirect URI. */
  knows(client: Destination, cookies: ReadonlyMap<string, string>, origin: string): Promise<boolean>
  /** `Set-Cookie` that adds this consent. */
  add(request: LoginRequest, subject: string, cookies: ReadonlyMap<string, string>, origin: string): Promise<string>
}

/** A client and its redirect URI. */
export type Destination = Pick<LoginRequest, 'client' | 'redirectUri'>

/** The stored form of a subject. */
export const shortHash = (text: string): string =>
  createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')

export function createStoredConsents(issuer: string, seal: Seal, clock: Clock): StoredConsents {
  // Servers on one host use separate cookies.
  const base = `extauth-consents-${createHash('sha256').update(issuer).digest('hex').slice(0, 8)}`
  const nameFor = (request: Destination): string =>
    redirectKind(request.redirectUri) === 'web' ? base : `${base}-session`

  const read = async (
    name: string,
    cookies: ReadonlyMap<string, string>,
    origin: string,
  ): Promise<readonly Entry[]> => {
    const value = cookies.get(cookieName(name, origin))
    if (value === undefined) return []
    try {
      const opened = await seal.open(name, Buffer.from(value, 'base64url'))
      const entries = opened === undefined ? [] : (JSON.parse(opened.plain.toString('utf8')) as readonly Entry[])
      const nowSeconds = clock.now() / 1000
      return entries.filter(([, , at]) => at + REMEMBERED_MS / 1000 > nowSeconds)
    } catch (error) {
      // The sealing secret was removed: ask the user again.
      if (error instanceof StoreError) return []
      throw error
    }
  }

  return {
    async find(request, cookies, origin) {
      const what = consentTo(request)
      return (await read(nameFor(request), cookies, origin)).find(([one]) => one === what)?.[1]
    },
    async knows(destination, cookies, origin) {
      const client = clientAt(destination)
      return (await read(nameFor(destination), cookies, origin)).some(([, , , one]) => one === client)
    },
    async add(request, subject, cookies, origin) {
      const name = nameFor(request)
      const what = consentTo(request)
      const others = (await read(name, cookies, origin)).filter(([one]) => one !== what).slice(1 - MOST_ENTRIES)
      const entry: Entry = [what, shortHash(subject), Math.floor(clock.now() / 1000), clientAt(request)]
      const value = seal.seal(name, Buffer.from(JSON.stringify([...others, entry]))).toString('base64url')
      return setCookie(name, value, origin, name === base ? REMEMBERED_MS : undefined)
    },
  }
}

const clientAt = ({ client, redirectUri }: Destination): string =>
  shortHash(hashKey([client.id, portless(redirectUri) ?? redirectUri])).slice(0, 11)

const consentTo = ({ client, redirectUri, scope, resource }: LoginRequest): string =>
  shortHash(hashKey([client.id, portless(redirectUri) ?? redirectUri, scope.toSorted().join(' '), resource]))
