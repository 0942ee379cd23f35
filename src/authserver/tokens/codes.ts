import { randomBytes } from 'node:crypto'
import { createTtlLru } from '../../cache/index.ts'
import type { Clock, EpochMs } from '../../core/index.ts'
import { createSealedRecords, type Seal, type Store, StoreError } from '../../storage/index.ts'
import type { StoredLogin } from './stored-login.ts'

/** The grant behind an authorization code. */
export interface CodeGrant {
  readonly clientId: string
  readonly redirectUri: string
  /** False when the authorization request omitted it, as allowed with a single registered one. */
  readonly isRedirectGiven: boolean
  /** S256 challenge (RFC 7636). */
  readonly challenge: string
  readonly scope: readonly string[]
  /** Requested but not granted scopes. */
  readonly notGranted?: readonly string[]
  readonly resource: string
  readonly subject: string
  readonly authenticatedAtMs: EpochMs
  /** Id of the future session and refresh family. */
  readonly tsid: string
  /** The upstreams' results, in order; the first identifies the user. */
  readonly logins: readonly StoredLogin[]
}

/** A code that was looked up; `isSpent` after redemption, then without logins. */
export interface FoundCode {
  readonly grant: CodeGrant
  readonly isSpent: boolean
  /** Its tokens were issued: a later use is a replay, not a concurrent request. */
  readonly isRedeemed: boolean
  readonly key: string
  readonly version: string
}

/** Authorization codes (RFC 6749 §4.1.2): opaque, stored under a keyed hash, redeemed once. */
export interface Codes {
  issue(grant: CodeGrant): Promise<string>
  /** Read-only: a rejected request does not consume the code. */
  find(code: string): Promise<FoundCode | undefined>
  /** Of concurrent calls exactly one gets true. A trace remains for the lifetime of a code, to detect a replay. */
  spend(found: FoundCode): Promise<boolean>
  /**
   * Records that the tokens of a code were issued; while the store fails, only replicas that got the message know.
   */
  noteRedeemed(found: FoundCode): Promise<void>
}

type CodeRecord = Pick<FoundCode, 'grant' | 'isSpent' | 'isRedeemed'>

/** Message with keys of consumed codes. A key does not reveal its code. */
const CHANNEL = 'codes-spent'
const REDEEMED = 'redeemed '
const MOST_REMEMBERED = 100_000

const CODE = /^[A-Za-z0-9_-]{43}$/

/**
 * A writer of the store can restore a consumed code: each replica keeps the keys of consumed codes for the lifetime
 * of a code.
 */
export function createCodes(store: Store, seal: Seal, options: { clock: Clock; lifespanMs: number }): Codes {
  const { clock, lifespanMs } = options
  const records = createSealedRecords(seal)
  const used = createTtlLru<{ readonly isRedeemed: boolean }>({ clock, maxEntries: MOST_REMEMBERED })
  const remember = (key: string, isRedeemed: boolean) => {
    const before = used.peek(key)
    used.set(key, { isRedeemed: isRedeemed || before?.isRedeemed === true }, clock.now() + lifespanMs)
  }
  // The subscription ends with the store.
  store.subscribe(CHANNEL, {
    onMessage: (message) =>
      message.startsWith(REDEEMED) ? remember(message.slice(REDEEMED.length), true) : remember(message, false),
    onGap: () => undefined,
  })
  const announce = (key: string, isRedeemed: boolean) => {
    remember(key, isRedeemed)
    store.publish(CHANNEL, isRedeemed ? `${REDEEMED}${key}` : key).catch(() => undefined)
  }
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
        if (stored === undefined || record === undefined) continue
        const isSpent = record.isSpent || used.peek(key) !== undefined
        const isRedeemed = record.isRedeemed || used.peek(key)?.isRedeemed === true
        return { ...record, isSpent, isRedeemed, key, version: stored.version }
      }
      return undefined
    },
    async spend({ grant, key, version }) {
      const isOurs = await store.compareAndSet(key, version, records.write(key, traceOf(grant, false)), lifespanMs)
      if (isOurs) announce(key, false)
      return isOurs
    },
    async noteRedeemed({ grant, key }) {
      announce(key, true)
      try {
        await store.put(key, records.write(key, traceOf(grant, true)), lifespanMs)
      } catch (error) {
        // An error now would withhold the tokens, and the client could not redeem the code again.
        if (!(error instanceof StoreError)) throw error
      }
    },
  }
}

const traceOf = (grant: CodeGrant, isRedeemed: boolean): CodeRecord => ({
  grant: { ...grant, logins: [] },
  isSpent: true,
  isRedeemed,
})
