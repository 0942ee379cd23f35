import { hash } from 'node:crypto'
import { asFailure, type Clock, Failure, isDuring, type Pause } from '../core/index.ts'
import { type Documents, jsonAnswer } from './documents.ts'
import { lifetimeOf } from './freshness.ts'
import { createKeyRefreshes } from './key-refreshes.ts'
import { keyNamesIn, readKeys, type VerificationKey } from './key-set.ts'

/** The public keys of one provider. */
export interface KeyStore {
  /**
   * Keys that may be used now, without waiting; undefined when they must be fetched first. Starts a refresh in the
   * background when they have reached their age.
   */
  ready(): readonly VerificationKey[] | undefined
  /** Keys that may be used now. Throws `Failure` (503, or 502 for an answer that is no JWKS) when there are none. */
  keys(): Promise<readonly VerificationKey[]>
  /**
   * A token names a key that is not there: the keys after a refresh that was begun since the first sight of that name.
   * Throws `identity_provider_unavailable` with the time to come back while none is allowed (`createKeyRefreshes`), and
   * `Failure` when the refresh failed, so that neither is taken for a bad token (decisions §2.3).
   */
  refreshed(name: string): Promise<readonly VerificationKey[]>
  /**
   * A signature fails under a listed key, which may have been replaced under its own name: the keys after a refresh;
   * undefined while none is allowed, and when it fails.
   */
  rechecked(): Promise<readonly VerificationKey[] | undefined>
  /** Whether the document lists a key with this `kid`, be it one that may not verify signatures. */
  lists(kid: string): boolean
  /** True while keys were asked for and never came. */
  isMissing(): boolean
}

/** Where a provider says that its keys are. */
export interface KeyLocation {
  /** Throws `Failure`. */
  readonly jwksUri: () => Promise<string>
  /** What was found there was of no use: find it out again next time. */
  readonly forget: () => void
}

export interface KeyStoreOptions {
  readonly clock: Clock
  readonly documents: Documents
  /** The URL of the keys, or who finds it out. */
  readonly location: string | KeyLocation
  /** Called after each fetch, with the number of keys that are at hand then, and with the failure if it failed. */
  readonly onFetched: (count: number, failure: Failure | undefined) => void
}

/** How long keys serve past their age while the provider cannot give new ones (decisions §2.4). */
const STALE_MS = 3_600_000
/** What a provider asks for by Retry-After is given up to here. */
const LONGEST_PAUSE_MS = 30_000
/** Without it: so soon after it is well again everybody is let in (decisions §4). */
const LONGEST_AWAY_PAUSE_MS = 2_000

/**
 * Keys fetched once for everybody who waits, current for the time that the answer's cache headers give, refreshed in the
 * background, and after a failure not asked for again before 1, then 2 s, or what the provider asks for.
 */
export function createKeyStore(options: KeyStoreOptions): KeyStore {
  const { clock, documents, location, onFetched } = options
  const refreshes = createKeyRefreshes(clock)
  let known: { keys: readonly VerificationKey[]; names: ReadonlySet<string>; staleAtMs: number } | undefined
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
    // A key that this fetch takes away was looked for by it.
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

  /** The failure of the last fetch while it is too early for the next one. */
  const pausing = (): Failure | undefined => {
    const nowMs = clock.now()
    if (!isDuring(failed, nowMs)) return undefined
    return describe(failed.failure, known !== undefined, failed.untilMs - nowMs)
  }

  const renew = () => {
    if (known === undefined || clock.now() < known.staleAtMs || pausing() !== undefined) return
    // What went wrong is in `failed`; whoever needs the keys is told.
    refresh().catch(() => undefined)
  }

  const ready = () => {
    if (known === undefined || clock.now() >= known.staleAtMs + STALE_MS) return undefined
    renew()
    return known.keys
  }

  /** One refresh for everybody, or the reason why not now. */
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
        // This fetch began before the first sight of the name: it may have brought the key all the same.
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
        // The failure is logged by `onFetched`; the signature stays wrong.
        return undefined
      }
    },
  }
}

/** Names come from tokens and may be long. */
const digestOf = (name: string): string => hash('sha256', name, 'base64url')

/**
 * What a caller is told. Once there have been keys, that there are none any more is an outage whatever the reason: 503
 * with Retry-After (decisions §2.4).
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
