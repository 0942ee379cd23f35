import { createHash, randomBytes } from 'node:crypto'
import type { Clock, EpochMs } from '../../src/core/index.ts'
import { isRegisteredRedirect } from '../identity/clients.ts'
import { type Form, OAuthRefusal } from '../identity/oauth-error.ts'

/** A user of the sample provider. */
export interface WorkspaceUser {
  /** A number, as some providers have it. */
  readonly id: number
  readonly login: string
  readonly mail: string
}

interface Asked {
  readonly redirectUri: string
  readonly state: string
  readonly scope: string
  readonly challenge: string
}

interface Issued {
  readonly user: WorkspaceUser
  readonly scope: string
}

export interface WorkspaceLogins {
  /** Checks an authorization request; the id of the login to show. Throws `invalid_request`. */
  begin(query: Form): string
  /** The address to go to, with the code. Throws `invalid_request`. */
  finish(login: string, user: string): string
  /** A code or a refresh token, good once, for new tokens. Throws `invalid_grant`, `unsupported_grant_type`. */
  redeem(form: Form): object
  /** The user of an access token; undefined for an invalid or expired one. */
  verify(accessToken: string): Issued | undefined
  /** Ends everything that was issued to a user. */
  revoke(user: string): void
}

const ACCESS_SECONDS = 300
const CODE_MS = 60_000
const LOGIN_MS = 10 * 60_000
const REFRESH_MS = 24 * 3_600_000
const MOST = 1000

interface Kept<T> {
  /** Gives the name under which it is found. */
  keep(value: T, ms: number): string
  find(name: string): T | undefined
  /** Throws `invalid_grant`. */
  take(name: string): T
  drop(isDropped: (value: T) => boolean): void
}

function createKept<T>(prefix: string, clock: Clock): Kept<T> {
  const kept = new Map<string, { readonly value: T; readonly endsAtMs: EpochMs }>()
  const find = (name: string): T | undefined => {
    const entry = kept.get(name)
    return entry !== undefined && clock.now() < entry.endsAtMs ? entry.value : undefined
  }
  return {
    keep(value, ms) {
      const name = prefix + randomBytes(24).toString('base64url')
      kept.set(name, { value, endsAtMs: clock.now() + ms })
      const oldest = kept.size > MOST ? kept.keys().next().value : undefined
      if (oldest !== undefined) kept.delete(oldest)
      return name
    },
    find,
    take(name) {
      const value = find(name)
      kept.delete(name)
      if (value === undefined) throw new OAuthRefusal('invalid_grant', 'it is not known, was used or has ended')
      return value
    },
    drop(isDropped) {
      for (const [name, { value }] of kept) if (isDropped(value)) kept.delete(name)
    },
  }
}

/** Codes, tokens and what they stand for. */
export function createWorkspaceLogins(
  client: { readonly redirectUris: readonly string[] },
  users: readonly WorkspaceUser[],
  clock: Clock,
  accessSeconds = ACCESS_SECONDS,
): WorkspaceLogins {
  const logins = createKept<Asked>('login-', clock)
  const codes = createKept<Asked & Issued>('code-', clock)
  const accessTokens = createKept<Issued>('xoxp-', clock)
  const refreshTokens = createKept<Issued>('xoxe-', clock)

  /** Everything about the user is a level down, and `token_type` is not Bearer: that is what the mapping is for. */
  const tokensFor = (issued: Issued): object => ({
    ok: true,
    token_type: 'workspace',
    workspace: { id: 'W1', name: 'Lab' },
    authed_user: {
      id: issued.user.id,
      access_token: accessTokens.keep(issued, accessSeconds * 1000),
      refresh_token: refreshTokens.keep(issued, REFRESH_MS),
      expires_in: accessSeconds,
      scope: issued.scope.split(' ').join(','),
    },
  })

  return {
    begin(query) {
      const redirectUri = query.require('redirect_uri')
      if (!isRegisteredRedirect(client, redirectUri))
        throw new OAuthRefusal('invalid_request', 'redirect_uri is not registered')
      if (query.require('response_type') !== 'code') throw new OAuthRefusal('invalid_request', 'response_type')
      const challenge = query.require('code_challenge')
      if (query.require('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(challenge))
        throw new OAuthRefusal('invalid_request', 'PKCE with S256 is required')
      const asked: Asked = { redirectUri, challenge, state: query.require('state'), scope: query.get('scope') ?? '' }
      return logins.keep(asked, LOGIN_MS)
    },
    finish(login, name) {
      const asked = logins.take(login)
      const user = users.find((one) => one.login === name)
      if (user === undefined) throw new OAuthRefusal('invalid_request', 'no such user')
      const url = new URL(asked.redirectUri)
      url.searchParams.set('code', codes.keep({ ...asked, user }, CODE_MS))
      url.searchParams.set('state', asked.state)
      return url.href
    },
    redeem(form) {
      switch (form.require('grant_type')) {
        case 'authorization_code': {
          const code = codes.take(form.require('code'))
          const digest = createHash('sha256').update(form.require('code_verifier')).digest('base64url')
          if (digest !== code.challenge || form.require('redirect_uri') !== code.redirectUri)
            throw new OAuthRefusal('invalid_grant', 'another verifier or redirect_uri')
          return tokensFor(code)
        }
        case 'refresh_token':
          return tokensFor(refreshTokens.take(form.require('refresh_token')))
        default:
          throw new OAuthRefusal('unsupported_grant_type', 'only codes and refresh tokens')
      }
    },
    verify: (accessToken) => accessTokens.find(accessToken),
    revoke(login) {
      for (const kept of [codes, accessTokens, refreshTokens]) kept.drop(({ user }) => user.login === login)
    },
  }
}
