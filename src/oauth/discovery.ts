import { type Claims, type ClaimValue, type Clock, Failure, isDuring, type Pause } from '../core/index.ts'
import { type Documents, jsonAnswer, unusableResponse } from './documents.ts'
import { lifetimeOf } from './freshness.ts'
import type { KeyLocation } from './key-store.ts'

/** The metadata of one issuer, or what somebody needs of them. */
export interface Discovery<T> {
  /**
   * Fetched when they are needed first and again when the document's time is over, once for everybody who waits; while
   * that fails the ones from before serve. Throws `Failure` when there never were any.
   */
  readonly metadata: () => Promise<T>
  /** What the document names was of no use: ask again next time. */
  readonly forget: () => void
  /**
   * An endpoint that `used` names does not answer there: the metadata as they are now, fetched at most every 30 s. Undefined where they
   * are the same or can't be fetched. Never throws.
   */
  readonly moved: (used: T) => Promise<T | undefined>
}

export interface DiscoveryOptions<T> {
  readonly issuerUrl: string
  readonly documents: Documents
  readonly clock: Clock
  /** Takes what is needed out of a document of this issuer. Throws `Failure` for a document of no use. */
  readonly read: (document: Claims) => T
  /** Where the document is looked for, in this order. Default: `discoveryUrls`. */
  readonly places?: readonly string[]
  /** Whether there is hope at the next place after a failure at one. Default: after an answer of no use. */
  readonly goesOn?: (failure: Failure) => boolean
  /** Whether a document's `issuer` is the one that was asked for. Default: byte for byte `issuerUrl` (decisions §2.4). */
  readonly isIssuer?: (issuer: ClaimValue | undefined) => boolean
}

const WHAT = 'discovery document'
/** The provider can't be asked: the document from before serves, and this is when it is asked again. */
const PAUSE_MS = 30_000

/**
 * The two places of the metadata document, in the order in which they are tried: OpenID Connect Discovery §4 (appended
 * to the issuer, less one trailing slash) and RFC 8414 §3.1 (between host and path).
 */
export function discoveryUrls(issuerUrl: string): readonly [string, string] {
  const bare = issuerUrl.replace(/\/$/, '')
  const { origin, pathname } = new URL(bare)
  const path = pathname === '/' ? '' : pathname
  return [`${bare}/.well-known/openid-configuration`, `${origin}/.well-known/oauth-authorization-server${path}`]
}

/** A document of no use, in words for the log. */
export const unusableDocument = (detail: string): Failure => unusableResponse(WHAT, `: ${detail}`)

/**
 * The URL of an endpoint that a document names. Plain http only where the issuer itself is plain http: else whatever is
 * sent there, codes and tokens too, would be for who listens. Throws `identity_provider_error`.
 */
export function endpointOf(document: Claims, name: string, issuerUrl: string): string {
  const url = document[name]
  const protocol = typeof url === 'string' ? URL.parse(url)?.protocol : undefined
  const isSafe = protocol === 'https:' || (protocol === 'http:' && new URL(issuerUrl).protocol === 'http:')
  if (typeof url !== 'string' || !isSafe) throw unusableDocument(`it has no https ${name}`)
  return url
}

/** How clients may authenticate at the token endpoint, as a document says; undefined where it does not. */
export function authMethodsIn(document: Claims): readonly ClaimValue[] | undefined {
  const methods = document['token_endpoint_auth_methods_supported']
  return Array.isArray(methods) ? (methods as readonly ClaimValue[]) : undefined
}

/** Whether id and secret go into the body, because Basic, which is there where nothing is said (RFC 8414 §2), is not on offer. */
export function isSecretInBody(document: Claims): boolean {
  const methods = authMethodsIn(document) ?? ['client_secret_basic']
  return !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
}

/** A provider that does not answer here will not answer elsewhere; one that has no such page may have the other. */
const isUseless = ({ code }: Failure): boolean => code === 'identity_provider_error'

/** Discovery for one issuer. A document counts only when its `issuer` is the one that was asked for. */
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
    if (!isIssuer(document['issuer'])) throw unusableDocument('it is for another issuer')
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
      // While others wait for a new document, or it has come already, nothing is fetched for this call.
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

/** Discovery for who needs nothing but the keys. */
export function createKeyDiscovery(issuerUrl: string, documents: Documents, clock: Clock): KeyLocation {
  const read = (document: Claims) => endpointOf(document, 'jwks_uri', issuerUrl)
  const { metadata, forget } = createDiscovery({ issuerUrl, documents, clock, read })
  return { jwksUri: metadata, forget }
}

/**
 * Discovery for who needs a token endpoint alone (RFC 8414 §2); with TLS client certificates the alias that is meant for them,
 * where there is one (RFC 8705 §5).
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

/** The metadata as a client sees them that shows a certificate. */
export function withAliases(document: Claims): Claims {
  const aliases = document['mtls_endpoint_aliases']
  return isClaims(aliases) ? { ...document, ...aliases } : document
}

const isClaims = (value: ClaimValue | undefined): value is Claims =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
