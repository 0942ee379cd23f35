import { CommandFailed } from '../../src/cli/index.ts'
import { type EpochMs, Failure, Secret } from '../../src/core/index.ts'
import type { TryUsers } from '../../src/compose/proxy/index.ts'
import { logInAtRoute } from './lab-login.ts'

/** Callers of these routes log in at the proxy itself. */
const LOGIN_ROUTES: ReadonlySet<string> = new Set(['/upstream', '/upstream-exchange', '/xaa'])
const ANONYMOUS_ROUTES: ReadonlySet<string> = new Set(['/unauthenticated', '/header-injection'])
const LIFETIME_SECONDS = 600
/** A token is used for half of its life, so that it does not end in the middle of a try. */
const REUSE_MS = LIFETIME_SECONDS * 500

interface Wanted {
  sub: string
  ttlSeconds: number
  groups?: string[]
}

/** The lab's users, to be tried as from the inspector: their tokens are made here and never reach the page. */
export function labTryUsers(
  users: readonly { readonly subject: string; readonly claims: Readonly<Record<string, unknown>> }[],
  mint: (wanted: Wanted) => Promise<string>,
): TryUsers {
  const made = new Map<string, { readonly token: Promise<Secret>; readonly untilMs: EpochMs }>()

  const make = async (user: string, routePath: string, proxyUrl: string): Promise<Secret> => {
    if (LOGIN_ROUTES.has(routePath)) return logIn(proxyUrl, routePath, user)
    const { groups } = (users.find(({ subject }) => subject === user)?.claims ?? {}) as { groups?: string[] }
    const token = await mint({ sub: user, ttlSeconds: LIFETIME_SECONDS, ...(groups === undefined ? {} : { groups }) })
    return new Secret(token)
  }
  return {
    names: users.map(({ subject }) => subject),
    async tokenOf(user, routePath, proxyUrl) {
      if (ANONYMOUS_ROUTES.has(routePath)) return undefined
      const key = JSON.stringify([user, LOGIN_ROUTES.has(routePath) ? routePath : ''])
      const known = made.get(key)
      if (known !== undefined && known.untilMs > Date.now()) return known.token
      const token = make(user, routePath, proxyUrl)
      made.set(key, { token, untilMs: Date.now() + REUSE_MS })
      token.catch(() => made.delete(key))
      return token
    },
  }
}

/** Rejects with `login_refused` where the login is not completed. */
async function logIn(proxyUrl: string, routePath: string, user: string): Promise<Secret> {
  try {
    return new Secret(await logInAtRoute(proxyUrl, routePath, user))
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error
    throw new Failure('login_refused', { detail: `as ${user}: ${error.message}`, cause: error })
  }
}
