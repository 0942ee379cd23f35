import { randomBytes } from 'node:crypto'
import { createTtlLru } from '../../cache/index.ts'
import type { Clock } from '../../core/index.ts'
import { createSealedRecords, type Seal, type Store, StoreError } from '../../storage/index.ts'
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
  /** Requested besides. */
  readonly notGranted?: readonly string[]
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
  /** Notes that the tokens of a spent code were made; while the store fails, those who were told know. */
  noteRedeemed(found: FoundCode): Promise<void>
}

type CodeRecord = Pick<FoundCode, 'grant' | 'isSpent' | 'isRedeemed'>

/** Keys of codes that were spent. A key tells nothing of its code. */
const CHANNEL = 'codes-spent'
const REDEEMED = 'redeemed '
const MOST_REMEMBERED = 100_000

const CODE = /^[A-Za-z0-9_-]{43}$/

/**
 * Who writes the store can put a spent code back as it was: each replica remembers for as long as a code lives which were
 * spent, here or, by message, elsewhere.
 */
export function createCodes(store: Store, seal: Seal, options: { clock: Clock; lifespanMs: number }): Codes {
  const { clock, lifespanMs } = options
  const records = createSealedRecords(seal)
  const spent = createTtlLru<{ readonly isRedeemed: boolean }>({ clock, maxEntries: MOST_REMEMBERED })
  const remember = (key: string, isRedeemed: boolean) => {
    const before = spent.peek(key)
    spent.set(key, { isRedeemed: isRedeemed || before?.isRedeemed === true }, clock.now() + lifespanMs)
  }
  // It ends with the store.
  store.subscribe(CHANNEL, {
    onMessage: (message) =>
      message.startsWith(REDEEMED) ? remember(message.slice(REDEEMED.length), true) : remember(message, false),
    onGap: () => undefined,
  })
  const tell = (key: string, isRedeemed: boolean) => {
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
        const isSpent = record.isSpent || spent.peek(key) !== undefined
        const isRedeemed = record.isRedeemed || spent.peek(key)?.isRedeemed === true
        return { ...record, isSpent, isRedeemed, key, version: stored.version }
      }
      return undefined
    },
    async spend({ grant, key, version }) {
      const isOurs = await store.compareAndSet(key, version, records.write(key, traceOf(grant, false)), lifespanMs)
      if (isOurs) tell(key, false)
      return isOurs
    },
    async noteRedeemed({ grant, key }) {
      tell(key, true)
      try {
        await store.put(key, records.write(key, traceOf(grant, true)), lifespanMs)
      } catch (error) {
        // An error now would keep the tokens from their client, which could not get them with the code again.
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
