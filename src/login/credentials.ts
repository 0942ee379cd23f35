import { CredentialRefusal, type EndpointCredentials, type EpochMs, type Log, Secret } from '../core/index.ts'
import { LockTimeout, withLock } from '../files/index.ts'
import { type BearerChallenge, readChallenge } from '../oauth/index.ts'
import { logIn, type LoginOptions } from './login.ts'
import { loginRefusal } from './server-calls.ts'
import type { LoginRecord, LoginStore } from './store.ts'
import { refreshed } from './tokens.ts'

/** Tokens are refreshed this long before expiry, in milliseconds: a request takes a while to arrive. */
const EARLY_MS = 30_000
/** After a failed login, background requests start no new one within this time. */
const REST_MS = 60_000
/** Time that another process may take for its login or refresh in addition to the login deadline. */
const LOCK_SLACK_MS = 60_000

const NOTHING_ASKED: BearerChallenge = { resourceMetadata: undefined, scopes: [], lacksScopes: false }

export interface LoginCredentialsOptions extends LoginOptions {
  readonly store: LoginStore
  readonly log: Log
}

/**
 * The access token of a user who logged in for one MCP server. Read from the store for each request, so that all
 * processes of the user share it; one process at a time refreshes it. A rejected token is refreshed, else the browser
 * is opened.
 */
export function loginCredentials(options: LoginCredentialsOptions): EndpointCredentials {
  const { endpoint, store, outbound, log, now } = options
  let failed: { readonly error: CredentialRefusal; readonly atMs: EpochMs } | undefined
  let running: Promise<void> | undefined

  const known = (): Promise<LoginRecord | undefined> => store.forEndpoint(endpoint.href)
  const isFresh = ({ expires_at_ms: end }: LoginRecord): boolean => end === undefined || end - EARLY_MS > now()

  /** Runs under the lock; another process may have renewed it meanwhile. */
  const renew = (
    used: string | undefined,
    asked: BearerChallenge,
    mayLogIn: boolean,
  ): Promise<LoginRecord | undefined> =>
    locked(options, async () => {
      const record = await known()
      if (record !== undefined && record.access_token !== used && isFresh(record)) return record
      const next = record === undefined || asked.lacksScopes ? undefined : await refreshed(record, outbound, now)
      if (next?.kind === 'renewed') {
        await store.save(next.record)
        log.info({}, 'access token refreshed')
        return next.record
      }
      if (!mayLogIn) return undefined
      // After a rejected or missing refresh token, only a registered client that the server still knows can log its
      // user in.
      const isTried = record?.refresh_token !== undefined || asked.lacksScopes
      const before = record && { ...record, isClientKnown: !isTried || next?.isClientKnown !== false }
      return replaceLogin(options, asked, before).catch(async (error: unknown) => {
        // No refresh has shown that the server knows the client: the next login registers a new one.
        if (record !== undefined && !isTried) await store.forget(record)
        throw error
      })
    })

  const replace = async (used: string | undefined, asked: BearerChallenge): Promise<void> => {
    if (failed !== undefined && now() - failed.atMs < REST_MS) throw failed.error
    try {
      const record = await renew(used, asked, true)
      failed = undefined
      if (record === undefined) throw loginRefusal('no token is stored')
    } catch (error) {
      if (!(error instanceof CredentialRefusal)) throw error
      failed = { error, atMs: now() }
      log.warn({ reason: error.reason }, error.message)
      throw error
    }
  }

  return {
    async current() {
      const record = await known()
      if (record === undefined) return undefined
      if (isFresh(record)) return new Secret(record.access_token)
      if (record.refresh_token === undefined) return new Secret(record.access_token)
      try {
        return new Secret(((await renew(record.access_token, NOTHING_ASKED, false)) ?? record).access_token)
      } catch (error) {
        if (!(error instanceof CredentialRefusal) || (record.expires_at_ms ?? 0) <= now()) throw error
        // The token is still valid; a later request tries again.
        return new Secret(record.access_token)
      }
    },
    async refused(used, challenge, mayAsk) {
      const asked = readChallenge(challenge)
      if (!mayAsk && running === undefined) {
        if ((await renew(used?.reveal(), asked, false)) !== undefined) return true
        throw new CredentialRefusal('invalid_token', 'The login has expired; the next request starts a new one.')
      }
      // Concurrent requests with rejected tokens wait for the same login.
      running ??= replace(used?.reveal(), asked).finally(() => (running = undefined))
      await running
      return true
    },
  }
}

/** Always logs in, and registers the client again if the server supports registration. Throws `CredentialRefusal`. */
export function newLogin(options: LoginCredentialsOptions, challenge: string | undefined): Promise<LoginRecord> {
  return locked(options, async () => {
    const record = await options.store.forEndpoint(options.endpoint.href)
    return replaceLogin(options, readChallenge(challenge), record && { ...record, isClientKnown: false })
  })
}

/** Runs under the lock; stores the new login instead of `before`, which may be for another server or resource. */
async function replaceLogin(
  options: LoginCredentialsOptions,
  asked: BearerChallenge,
  before: (LoginRecord & { readonly isClientKnown: boolean }) | undefined,
): Promise<LoginRecord> {
  const { store, log } = options
  const login = await logIn(asked, before, options)
  if (before !== undefined) await store.forget(before)
  await store.save(login)
  log.info({ refreshable: login.refresh_token !== undefined }, 'logged in')
  return login
}

async function locked<T>(options: LoginCredentialsOptions, work: () => Promise<T>): Promise<T> {
  const { store, endpoint, patienceMs, signal } = options
  try {
    return await withLock(store.directory, endpoint.href, patienceMs + LOCK_SLACK_MS, work, signal)
  } catch (error) {
    if (error instanceof LockTimeout) throw loginRefusal('timed out waiting for the login of another program')
    throw error
  }
}
