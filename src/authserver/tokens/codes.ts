import { randomBytes } from 'node:crypto'
import type { Seal, Store } from '../../storage/index.ts'
import { createSealedRecords } from '../sealed-records.ts'
import type { StoredLogin } from './stored-login.ts'

/** What an authorization code stands for. */
export interface CodeGrant {
  readonly clientId: string
  readonly redirectUri: string
  /** False when the authorization request left it out, as it may where only one is registered. */
  readonly isRedirectGiven: boolean
  /** S256 challenge (RFC 7636). */
  readonly challenge: string
  readonly scope: readonly string[]
  readonly resource: string
  readonly subject: string
  readonly authenticatedAtMs: number
  /** The session and the refresh family that will come of it. */
  readonly tsid: string
  /** What the upstreams gave, in order; the first says who it is. */
  readonly logins: readonly StoredLogin[]
}

/** A code that was looked up; `isSpent` when it was redeemed before, then without logins. */
export interface FoundCode {
  readonly grant: CodeGrant
  readonly isSpent: boolean
  /** Its tokens were made: whoever shows it now is late, not one of several at once. */
  readonly isRedeemed: boolean
  readonly key: string
  readonly version: string
}

/** Authorization codes (RFC 6749 §4.1.2): opaque, known to the store by a keyed hash only, redeemed once. */
export interface Codes {
  issue(grant: CodeGrant): Promise<string>
  /** Changes nothing: a request that is refused does not burn the code. */
  find(code: string): Promise<FoundCode | undefined>
  /** Of many at once exactly one gets true; a trace stays for as long as a code lives, to notice the next one. */
  spend(found: FoundCode): Promise<boolean>
  /** Notes that the tokens of a spent code were made. */
  noteRedeemed(found: FoundCode): Promise<void>
}

type CodeRecord = Pick<FoundCode, 'grant' | 'isSpent' | 'isRedeemed'>

const CODE = /^[A-Za-z0-9_-]{43}$/

export function createCodes(store: Store, seal: Seal, lifespanMs: number): Codes {
  const records = createSealedRecords(seal)
  const keyOf = (lookup: string): string => `code:${lookup}`

  return {
    async issue(grant) {
      const code = randomBytes(32).toString('base64url')
      const key = keyOf(seal.lookupKey('code', code))
      await store.put(
        key,
        records.write(key, { grant, isSpent: false, isRedeemed: false } satisfies CodeRecord),
        lifespanMs,
      )
      return code
    },
    async find(code) {
      if (!CODE.test(code)) return undefined
      for (const key of seal.lookupKeys('code', code).map(keyOf)) {
        const stored = await store.get(key)
        const record = await records.read<CodeRecord>(key, stored)
        if (stored !== undefined && record !== undefined) return { ...record, key, version: stored.version }
      }
      return undefined
    },
    spend({ grant, key, version }) {
      return store.compareAndSet(key, version, records.write(key, traceOf(grant, false)), lifespanMs)
    },
    async noteRedeemed({ grant, key }) {
      await store.put(key, records.write(key, traceOf(grant, true)), lifespanMs)
    },
  }
}

const traceOf = (grant: CodeGrant, isRedeemed: boolean): CodeRecord => ({
  grant: { ...grant, logins: [] },
  isSpent: true,
  isRedeemed,
})
