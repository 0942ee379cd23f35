import { createHash } from 'node:crypto'
import type { UpstreamLeg } from './upstream.ts'

export interface AuthorizationRequest {
  /** Its own query is kept (RFC 6749 §3.1). */
  readonly endpoint: string
  readonly clientId: string
  readonly scopes: readonly string[]
  /** Undefined for OAuth2, which has none. */
  readonly nonce: string | undefined
  /** The schema excludes reserved parameters. */
  readonly additional: Readonly<Record<string, string>> | undefined
}

/** The configured scopes, and those that this login needs beside them. */
export const requestedScopes = (configured: readonly string[], redirect: UpstreamLeg): readonly string[] => [
  ...new Set([...configured, ...(redirect.scopes ?? [])]),
]

/** Builds the authorization request of a login step (RFC 6749 §4.1.1, RFC 7636 §4.3 with S256). */
export function authorizationUrl(redirect: UpstreamLeg, request: AuthorizationRequest): URL {
  const url = new URL(request.endpoint)
  const { searchParams } = url
  for (const [name, value] of Object.entries(request.additional ?? {})) searchParams.set(name, value)
  if (redirect.claims !== undefined) searchParams.set('claims', redirect.claims)
  searchParams.set('response_type', 'code')
  searchParams.set('client_id', request.clientId)
  searchParams.set('redirect_uri', redirect.redirectUri)
  if (request.scopes.length > 0) searchParams.set('scope', request.scopes.join(' '))
  searchParams.set('state', redirect.state)
  if (request.nonce !== undefined) searchParams.set('nonce', request.nonce)
  searchParams.set('code_challenge', createHash('sha256').update(redirect.codeVerifier.reveal()).digest('base64url'))
  searchParams.set('code_challenge_method', 'S256')
  return url
}

/** The token request form for a code (RFC 6749 §4.1.3, RFC 7636 §4.5). */
export const codeForm = (code: string, redirect: UpstreamLeg): readonly (readonly [string, string])[] => [
  ['grant_type', 'authorization_code'],
  ['code', code],
  ['redirect_uri', redirect.redirectUri],
  ['code_verifier', redirect.codeVerifier.reveal()],
]
