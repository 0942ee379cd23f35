import { type Claims, type ClaimValue, type Clock, Failure, isDuring, type Pause } from '../core/index.ts'
import { type Documents, jsonAnswer, unusableResponse } from './documents.ts'
import { lifetimeOf } from './freshness.ts'
import type { KeyLocation } from './key-store.ts'

/** The metadata of one issuer, reduced to what a caller needs. */
export interface Discovery<T> {
  /**
   * Fetched on first use and again after the document expired, once for concurrent callers; after a failed refresh
   * the previous metadata are used. Throws `Failure` when none were ever fetched.
   */
  readonly metadata: () => Promise<T>
  /** Discards the metadata: an endpoint they name does not work. */
  readonly forget: () => void
  /**
   * After an endpoint in `used` failed: refetches the metadata, at most every 30 s. Undefined when they are unchanged
   * or unavailable. Never throws.
   */
  readonly moved: (used: T) => Promise<T | undefined>
}

export interface DiscoveryOptions<T> {
  readonly issuerUrl: string
  readonly documents: Documents
  readonly clock: Clock
  /** Extracts the needed metadata from a document. Throws `Failure` for an unusable document. */
  readonly read: (document: Claims) => T
  /** Candidate URLs of the document, in order. Default: `discoveryUrls`. */
  readonly places?: readonly string[]
  /** Whether to try the next URL after a failure. Default: after an unusable response. */
  readonly goesOn?: (failure: Failure) => boolean
  /** Whether a document's `issuer` is accepted. Default: exactly `issuerUrl` (decisions §2.4). */
  readonly isIssuer?: (issuer: ClaimValue | undefined) => boolean
}

const WHAT = 'discovery document'
/** Retry interval while the provider is unreachable and the previous document is used. */
const PAUSE_MS = 30_000

/**
 * The candidate metadata URLs, in order: OpenID Connect Discovery §4 (appended to the issuer, less one trailing
 * slash) and RFC 8414 §3.1 (between host and path).
 */
export function discoveryUrls(issuerUrl: string): readonly [string, string] {
  const bare = issuerUrl.replace(/\/$/, '')
  const { origin, pathname } = new URL(bare)
  const path = pathname === '/' ? '' : pathname
  return [`${bare}/.well-known/openid-configuration`, `${origin}/.well-known/oauth-authorization-server${path}`]
}

/** Failure for an unusable document; `detail` is logged. */
export const unusableDocument = (detail: string): Failure => unusableResponse(WHAT, `: ${detail}`)

/**
 * Reads an endpoint URL from a document. Plain http is accepted only when the issuer is plain http: otherwise codes
 * and tokens would be sent in clear text. Throws `identity_provider_error`.
 */
export function endpointOf(document: Claims, name: string, issuerUrl: string): string {
  const url = document[name]
  const protocol = typeof url === 'string' ? URL.parse(url)?.protocol : undefined
  const isSafe = protocol === 'https:' || (protocol === 'http:' && new URL(issuerUrl).protocol === 'http:')
  if (typeof url !== 'string' || !isSafe) throw unusableDocument(`it has no https ${name}`)
  return url
}

/** Authentication methods of the token endpoint; undefined when the document has none. */
export function authMethodsIn(document: Claims): readonly ClaimValue[] | undefined {
  const methods = document['token_endpoint_auth_methods_supported']
  return Array.isArray(methods) ? (methods as readonly ClaimValue[]) : undefined
}

/** Whether to send id and secret in the body: when Basic, the default (RFC 8414 §2), is not supported. */
export function isSecretInBody(document: Claims): boolean {
  const methods = authMethodsIn(document) ?? ['client_secret_basic']
  return !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
}

/** An unreachable provider fails at either URL; one without this page may have the other. */
const isUseless = ({ code }: Failure): boolean => code === 'identity_provider_error'

/** Creates the discovery of one issuer. A document is accepted only for the requested `issuer`. */
export function createDiscovery<T>(options: DiscoveryOptions<T>): Discovery<T> {
  const { issuerUrl, documents, clock, read, goesOn = isUseless } = options
  const { places = discoveryUrls(issuerUrl), isIssuer = (issuer) => issuer === issuerUrl } = options
  let known: { readonly metadata: T } | undefined
  let untilMs = Number.NEGATIVE_INFINITY
  let flight: Promise<T> | undefined
  let lookedAgain: Pause | undefined

  const fetchFrom = async (url: string): Promise<T> => {
    const response = await documents.get(url, WHAT)
    const document = jsonAnswer(response, WHAT)
    if (!isIssuer(document['issuer'])) throw unusableDocument('it is for a different issuer')
    const metadata = read(document)
    known = { metadata }
    untilMs = clock.now() + lifetimeOf(response.headers, clock.now())
    return metadata
  }

  const fetchNew = async (): Promise<T> => {
    let first: unknown
    for (const place of places) {
      try {
        return await fetchFrom(place)
      } catch (error) {
        if (!(error instanceof Failure) || !goesOn(error)) throw error
        first ??= error
      }
    }
    throw first
  }

  const renew = async (): Promise<T> => {
    try {
      return await fetchNew()
    } catch (error) {
      if (known === undefined) throw error
      untilMs = clock.now() + PAUSE_MS
      return known.metadata
    }
  }

  const metadata = async (): Promise<T> => {
    if (known !== undefined && clock.now() < untilMs) return known.metadata
    flight ??= renew().finally(() => (flight = undefined))
    return flight
  }
  const forget = (): void => void (untilMs = Number.NEGATIVE_INFINITY)

  return {
    metadata,
    forget,
    async moved(used) {
      const nowMs = clock.now()
      // A fetch is in flight or has already finished: no further one is needed.
      if (known?.metadata === used && flight === undefined) {
        if (isDuring(lookedAgain, nowMs)) return undefined
        lookedAgain = { sinceMs: nowMs, untilMs: nowMs + PAUSE_MS }
        forget()
      }
      const now = await metadata().catch(() => undefined)
      return now === used ? undefined : now
    },
  }
}

/** Discovery for callers that need only the keys. */
export function createKeyDiscovery(issuerUrl: string, documents: Documents, clock: Clock): KeyLocation {
  const read = (document: Claims) => endpointOf(document, 'jwks_uri', issuerUrl)
  const { metadata, forget } = createDiscovery({ issuerUrl, documents, clock, read })
  return { jwksUri: metadata, forget }
}

/**
 * Discovery for callers that need only a token endpoint (RFC 8414 §2); with TLS client certificates its mTLS alias,
 * if any (RFC 8705 §5).
 */
export function createTokenEndpointDiscovery(
  issuerUrl: string,
  options: { readonly documents: Documents; readonly clock: Clock; readonly isMutualTls: boolean },
): Discovery<{ readonly url: string; readonly issuer: string }> {
  const { documents, clock, isMutualTls } = options
  const read = (document: Claims) => {
    const url = endpointOf(isMutualTls ? withAliases(document) : document, 'token_endpoint', issuerUrl)
    return { url, issuer: issuerUrl }
  }
  return createDiscovery({ issuerUrl, documents, clock, read })
}

/** The metadata with mTLS aliases applied. */
export function withAliases(document: Claims): Claims {
  const aliases = document['mtls_endpoint_aliases']
  return isClaims(aliases) ? { ...document, ...aliases } : document
}

const isClaims = (value: ClaimValue | undefined): value is Claims =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
