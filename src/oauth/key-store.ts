import { hash } from 'node:crypto'
import { asFailure, type Clock, type EpochMs, Failure, isDuring, type Pause } from '../core/index.ts'
import { type Documents, jsonAnswer } from './documents.ts'
import { lifetimeOf } from './freshness.ts'
import { createKeyRefreshes } from './key-refreshes.ts'
import { keyNamesIn, readKeys, type VerificationKey } from './key-set.ts'

/** The public keys of one provider. */
export interface KeyStore {
  /**
   * The current keys, synchronously; undefined when they must be fetched first. Starts a background refresh when they
   * are stale.
   */
  ready(): readonly VerificationKey[] | undefined
  /** The current keys. Throws `Failure` (503, or 502 for a response that is not a JWKS) without any. */
  keys(): Promise<readonly VerificationKey[]>
  /**
   * For a token with an unknown key: the keys after a refresh begun since the first sight of that name. Throws
   * `identity_provider_unavailable` with a Retry-After while no refresh is allowed (`createKeyRefreshes`), and
   * `Failure` when it failed, so that neither looks like a bad token (decisions §2.3).
   */
  refreshed(name: string): Promise<readonly VerificationKey[]>
  /**
   * For a signature that fails under a listed key, which may have been replaced under the same name: the keys after a
   * refresh; undefined while none is allowed, and when it fails.
   */
  rechecked(): Promise<readonly VerificationKey[] | undefined>
  /** Whether the document lists a key with this `kid`, including keys that may not verify signatures. */
  lists(kid: string): boolean
  /** True when the keys were requested but never arrived. */
  isMissing(): boolean
}

/** Finds the URL of a provider's keys. */
export interface KeyLocation {
  /** Throws `Failure`. */
  readonly jwksUri: () => Promise<string>
  /** Discards the location: it did not work. */
  readonly forget: () => void
}

export interface KeyStoreOptions {
  readonly clock: Clock
  readonly documents: Documents
  /** The URL of the keys, or its discovery. */
  readonly location: string | KeyLocation
  /** Called after each fetch, with the number of available keys and the failure, if any. */
  readonly onFetched: (count: number, failure: Failure | undefined) => void
}

/** How long stale keys are used while the provider is unavailable (decisions §2.4). */
const STALE_MS = 3_600_000
/** Upper limit for a provider's Retry-After. */
const LONGEST_PAUSE_MS = 30_000
/** Without Retry-After: all callers are accepted this soon after the provider recovers (decisions §4). */
const LONGEST_AWAY_PAUSE_MS = 2_000

/**
 * Fetches keys once for concurrent callers, honors the response's cache headers, refreshes in the background, and
 * pauses after failures for 1, then 2 s, or as the provider's Retry-After requests.
 */
export function createKeyStore(options: KeyStoreOptions): KeyStore {
  const { clock, documents, location, onFetched } = options
  const refreshes = createKeyRefreshes(clock)
  let known: { keys: readonly VerificationKey[]; names: ReadonlySet<string>; staleAtMs: EpochMs } | undefined
  let flight: Promise<readonly VerificationKey[]> | undefined
  let failed: ({ readonly failure: Failure } & Pause) | undefined
  let failures = 0

  const fetchKeys = async (): Promise<readonly VerificationKey[]> => {
    const url = typeof location === 'string' ? location : await location.jwksUri()
    const response = await documents.get(url, 'key set')
    const document = jsonAnswer(response, 'key set')
    const keys = readKeys(document)
    const names = keyNamesIn(document)
    known = { keys, names, staleAtMs: clock.now() + lifetimeOf(response.headers, clock.now()) }
    return keys
  }

  const noteFailure = (failure: Failure) => {
    // The keys may have moved.
    if (typeof location !== 'string') location.forget()
    failures += 1
    const pauseMs = Math.min(LONGEST_AWAY_PAUSE_MS, 1000 * 2 ** Math.min(failures - 1, 5))
    const askedMs = (failure.retryAfterSeconds ?? 0) * 1000
    const sinceMs = clock.now()
    failed = { failure, sinceMs, untilMs: sinceMs + Math.min(LONGEST_PAUSE_MS, Math.max(pauseMs, askedMs)) }
  }

  const refresh = (): Promise<readonly VerificationKey[]> => {
    if (flight !== undefined) return flight
    // This fetch also answers for the keys that it removed.
    for (const name of known?.names ?? []) refreshes.see(digestOf(name))
    const looked = refreshes.begin()
    flight = fetchKeys()
      .then(
        (keys) => {
          looked(true)
          failures = 0
          failed = undefined
          onFetched(keys.length, undefined)
          return keys
        },
        (error: unknown) => {
          const failure = asFailure(error)
          looked(false)
          noteFailure(failure)
          onFetched(known?.keys.length ?? 0, failure)
          throw failure
        },
      )
      .finally(() => (flight = undefined))
    return flight
  }

  /** The failure of the last fetch while the pause lasts. */
  const pausing = (): Failure | undefined => {
    const nowMs = clock.now()
    if (!isDuring(failed, nowMs)) return undefined
    return describe(failed.failure, known !== undefined, failed.untilMs - nowMs)
  }

  const renew = () => {
    if (known === undefined || clock.now() < known.staleAtMs || pausing() !== undefined) return
    // The failure is kept in `failed` and reported to callers that need keys.
    refresh().catch(() => undefined)
  }

  const ready = () => {
    if (known === undefined || clock.now() >= known.staleAtMs + STALE_MS) return undefined
    renew()
    return known.keys
  }

  /** One refresh for concurrent callers, or the failure that prevents it. */
  const fetched = async (): Promise<readonly VerificationKey[]> => {
    const failure = flight === undefined ? pausing() : undefined
    if (failure !== undefined) throw failure
    try {
      return await refresh()
    } catch (error) {
      throw pausing() ?? asFailure(error)
    }
  }

  const takeUnlessPausing = (): void => {
    const failure = pausing()
    if (failure !== undefined) throw failure
    refreshes.take()
  }

  return {
    ready,
    keys: async () => ready() ?? fetched(),
    isMissing: () => known === undefined && failures > 0,
    lists: (kid) => known?.names.has(kid) === true,
    async refreshed(name) {
      const key = digestOf(name)
      if (known !== undefined && refreshes.wasLookedFor(key)) return known.keys
      refreshes.see(key)
      if (flight !== undefined && !refreshes.isLookedFor(key)) {
        // This fetch began before the first sight of the name, but may include the key.
        const keys = await fetched()
        if (known?.names.has(name) === true) return keys
      }
      if (flight === undefined) takeUnlessPausing()
      return fetched()
    },
    async rechecked() {
      try {
        return flight !== undefined || (pausing() === undefined && refreshes.takeRecheck())
          ? await fetched()
          : undefined
      } catch {
        // `onFetched` logs the failure; the signature stays wrong.
        return undefined
      }
    },
  }
}

/** Names come from tokens and may be long. */
const digestOf = (name: string): string => hash('sha256', name, 'base64url')

/**
 * The failure for callers. Once keys were available, their loss is an outage for any reason: 503 with Retry-After
 * (decisions §2.4).
 */
function describe(failure: Failure, hadKeys: boolean, leftMs: number): Failure {
  if (failure.code === 'secret_unavailable' || failure.code === 'internal_error') return failure
  const retryAfterSeconds = Math.max(1, failure.retryAfterSeconds ?? 0, Math.ceil(leftMs / 1000))
  const code = hadKeys ? 'identity_provider_unavailable' : failure.code
  return new Failure(code, {
    detail: failure.detail ?? 'no keys',
    rule: failure.rule,
    cause: failure.cause,
    retryAfterSeconds,
  })
}
