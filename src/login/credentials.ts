import { CredentialRefusal, type EndpointCredentials, type Log, Secret } from '../core/index.ts'
import { type Asked, readChallenge } from './discovery.ts'
import { LockTimeout, withLock } from './lock.ts'
import { logIn, type LoginOptions } from './login.ts'
import { loginRefusal } from './server-calls.ts'
import type { LoginRecord, LoginStore } from './store.ts'
import { refreshed } from './tokens.ts'

/** Renewed so long before its end, in milliseconds: a request takes a while to arrive. */
const EARLY_MS = 30_000
/** A login that failed is not begun again by what the user did not ask for within this time. */
const REST_MS = 60_000
/** How long another process may take with its login or refresh beyond the patience with the person. */
const LOCK_SLACK_MS = 60_000

const NOTHING_ASKED: Asked = { resourceMetadata: undefined, scopes: [], lacksScopes: false }

export interface LoginCredentialsOptions extends LoginOptions {
  readonly store: LoginStore
  readonly log: Log
}

/**
 * The access token of a person who logged in for one MCP server: read from the store for each request, so that all
 * processes of the user have the same, and renewed by one of them at a time. A refused token is renewed, else the
 * browser is opened.
 */
export function loginCredentials(options: LoginCredentialsOptions): EndpointCredentials {
  const { endpoint, store, outbound, log, now } = options
  let failed: { readonly error: CredentialRefusal; readonly atMs: number } | undefined
  let running: Promise<void> | undefined

  const known = (): Promise<LoginRecord | undefined> => store.forEndpoint(endpoint.href)
  const isFresh = ({ expires_at_ms: end }: LoginRecord): boolean => end === undefined || end - EARLY_MS > now()

  /** Under the lock: another process may have done it meanwhile. */
  const renew = (used: string | undefined, asked: Asked, mayLogIn: boolean): Promise<LoginRecord | undefined> =>
    locked(options, async () => {
      const record = await known()
      if (record !== undefined && record.access_token !== used && isFresh(record)) return record
      const next = record === undefined || asked.lacksScopes ? undefined : await refreshed(record, outbound, now)
      if (next?.kind === 'renewed') {
        await store.save(next.record)
        log.info({}, 'the access token was renewed')
        return next.record
      }
      if (!mayLogIn) return undefined
      // A refresh token that was refused, or none: only a registered client that the server knows gets its user back.
      const isTried = record?.refresh_token !== undefined || asked.lacksScopes
      const before = record && { ...record, isClientKnown: !isTried || next?.isClientKnown !== false }
      return replaceLogin(options, asked, before).catch(async (error: unknown) => {
        // No refresh has shown that the client is known: the next login registers another one.
        if (record !== undefined && !isTried) await store.forget(record)
        throw error
      })
    })

  const replace = async (used: string | undefined, asked: Asked): Promise<void> => {
    if (failed !== undefined && now() - failed.atMs < REST_MS) throw failed.error
    try {
      const record = await renew(used, asked, true)
      failed = undefined
      if (record === undefined) throw loginRefusal('there is no token')
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
        // There was time left, and there is for another try.
        return new Secret(record.access_token)
      }
    },
    async refused(used, challenge, mayAsk) {
      const asked = readChallenge(challenge)
      if (!mayAsk && running === undefined) {
        if ((await renew(used?.reveal(), asked, false)) !== undefined) return true
        throw new CredentialRefusal('invalid_token', 'The login has ended; the next request asks for another.')
      }
      // Whoever is refused meanwhile waits for the same login.
      running ??= replace(used?.reveal(), asked).finally(() => (running = undefined))
      await running
      return true
    },
  }
}

/** Logs in whatever is stored, and registers the client again where the server registers clients. Throws `CredentialRefusal`. */
export function newLogin(options: LoginCredentialsOptions, challenge: string | undefined): Promise<LoginRecord> {
  return locked(options, async () => {
    const record = await options.store.forEndpoint(options.endpoint.href)
    return replaceLogin(options, readChallenge(challenge), record && { ...record, isClientKnown: false })
  })
}

/** Under the lock: a new login is stored instead of `before`, which may be of another server or resource. */
async function replaceLogin(
  options: LoginCredentialsOptions,
  asked: Asked,
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
    if (error instanceof LockTimeout) throw loginRefusal('another program has been logging in for too long')
    throw error
  }
}
