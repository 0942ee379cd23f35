import { createHash, randomBytes } from 'node:crypto'
import type { Clock, EpochMs } from '../../src/core/index.ts'
import { type Clients, isRegisteredRedirect, type LabClient } from './clients.ts'
import { type Form, OAuthRefusal } from './oauth-error.ts'

/** A user of the login page. */
export interface LabUser {
  readonly subject: string
  readonly claims: Readonly<Record<string, unknown>>
}

interface Pending {
  readonly client: LabClient
  readonly redirectUri: string
  readonly state: string | undefined
  readonly scope: string | undefined
  readonly nonce: string | undefined
  readonly resources: readonly string[]
  readonly challenge: string
  readonly expiresAtMs: EpochMs
}

/** The grant of a code. */
export type Grant = Pending & { readonly user: LabUser }

export interface Logins {
  /** Checks an authorization request; the id of the login to show, or the address to send its error to. */
  begin(query: Form): { readonly login: string } | { readonly redirect: string }
  /** The chosen user logs in: the address to go to, with the code. Throws `invalid_request`. */
  finish(login: string, subject: string): string
  /** Redeems a code once: same client, same redirect, PKCE S256. Throws `invalid_grant`. */
  redeem(form: Form, client: LabClient): Grant
  /** A refresh token for what was granted: good once, for a day. */
  refreshTokenFor(grant: Grant): string
  /** Redeems a refresh token of this client and returns its grant. Throws `invalid_grant`. */
  renew(form: Form, client: LabClient): Grant
}

const LIFETIME_MS = 10 * 60_000
const REFRESH_LIFETIME_MS = 24 * 3_600_000
const MAX_OPEN = 1000

/** The authorization-code flow with PKCE (OAuth 2.1) and a login without a password. */
export function createLogins(issuer: () => string, clients: Clients, users: readonly LabUser[], clock: Clock): Logins {
  const pending = new Map<string, Pending>()
  const codes = new Map<string, Grant>()
  const refreshTokens = new Map<string, Grant>()

  function keep<T>(map: Map<string, T>, value: T): string {
    const id = randomBytes(32).toString('base64url')
    map.set(id, value)
    const oldest = map.size > MAX_OPEN ? map.keys().next().value : undefined
    if (oldest !== undefined) map.delete(oldest)
    return id
  }

  function take<T extends Pending>(map: Map<string, T>, id: string): T | undefined {
    const value = map.get(id)
    map.delete(id)
    return value !== undefined && value.expiresAtMs > clock.now() ? value : undefined
  }

  function address(to: Pick<Pending, 'redirectUri' | 'state'>, result: Record<string, string>): string {
    const url = new URL(to.redirectUri)
    for (const [name, value] of Object.entries(result)) url.searchParams.set(name, value)
    if (to.state !== undefined) url.searchParams.set('state', to.state)
    url.searchParams.set('iss', issuer())
    return url.href
  }

  return {
    begin(query) {
      const client = clients.find(query.require('client_id'))
      const redirectUri = query.require('redirect_uri')
      // A client or redirect that is not known is never sent anywhere (RFC 6749 §4.1.2.1).
      if (client === undefined || !isRegisteredRedirect(client, redirectUri)) {
        throw new OAuthRefusal('invalid_request', 'client_id or redirect_uri is not registered')
      }
      const state = query.get('state')
      const refuse = (error: string, description: string) => ({
        redirect: address({ redirectUri, state }, { error, error_description: description }),
      })
      if (query.get('response_type') !== 'code')
        return refuse('unsupported_response_type', 'response_type must be code')
      const challenge = query.get('code_challenge')
      if (query.get('code_challenge_method') !== 'S256' || challenge === undefined || !/^[\w-]{43}$/.test(challenge)) {
        return refuse('invalid_request', 'PKCE with S256 is required')
      }
      const resources = query.all('resource')
      if (!resources.every((resource) => URL.canParse(resource)))
        return refuse('invalid_target', 'resource must be a URL')
      const expiresAtMs = clock.now() + LIFETIME_MS
      const [scope, nonce] = [query.get('scope'), query.get('nonce')]
      return { login: keep(pending, { client, redirectUri, state, scope, nonce, resources, challenge, expiresAtMs }) }
    },
    finish(login, subject) {
      const request = take(pending, login)
      const user = users.find((candidate) => candidate.subject === subject)
      if (request === undefined || user === undefined) {
        throw new OAuthRefusal('invalid_request', 'this login has expired or its user is unknown')
      }
      return address(request, { code: keep(codes, { ...request, user, expiresAtMs: clock.now() + 60_000 }) })
    },
    redeem(form, client) {
      const grant = take(codes, form.require('code'))
      const digest = createHash('sha256').update(form.require('code_verifier')).digest('base64url')
      const redirect = form.get('redirect_uri')
      if (
        grant === undefined ||
        grant.client.id !== client.id ||
        grant.challenge !== digest ||
        (redirect !== undefined && redirect !== grant.redirectUri)
      ) {
        throw new OAuthRefusal('invalid_grant', 'the code is not valid for this client')
      }
      return grant
    },
    refreshTokenFor: (grant) => keep(refreshTokens, { ...grant, expiresAtMs: clock.now() + REFRESH_LIFETIME_MS }),
    renew(form, client) {
      const grant = take(refreshTokens, form.require('refresh_token'))
      if (grant === undefined || grant.client.id !== client.id) {
        throw new OAuthRefusal('invalid_grant', 'the refresh token is not valid for this client')
      }
      return grant
    },
  }
}

const escape = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

/** The login page: pick a user, no password. */
export function loginPage(login: string, users: readonly LabUser[]): string {
  const buttons = users.map(
    ({ subject, claims }) =>
      `<p><button name="user" value="${escape(subject)}">${escape(subject)}</button> ${escape(JSON.stringify(claims))}</p>`,
  )
  return [
    '<!doctype html><meta charset="utf-8"><title>extauth lab</title>',
    '<h1>Who are you?</h1><p>This is a demo service: there are no passwords.</p>',
    `<form method="post" action="/login"><input type="hidden" name="login" value="${escape(login)}">`,
    ...buttons,
    '</form>',
  ].join('\n')
}
