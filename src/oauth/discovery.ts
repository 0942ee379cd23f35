import { type Clock, Failure } from '../core/index.ts'
import type { ProviderClient } from './provider-client.ts'
import { lifetimeOf } from './freshness.ts'
import { jsonAnswer } from './json-answer.ts'

/** Where a provider says that its keys are. */
export interface Discovery {
  /** The `jwks_uri`, fetched again when the document's time is over. Throws `Failure`. */
  jwksUri(): Promise<string>
  /** The URI was of no use: ask again next time. */
  forget(): void
}

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

/**
 * Discovery for one issuer. A document counts only when its `issuer` equals `issuerUrl` byte for byte (decisions §2.4);
 * a plain http `jwks_uri` only when the issuer itself is plain http.
 */
export function createDiscovery(issuerUrl: string, client: ProviderClient, clock: Clock): Discovery {
  let known: { uri: string; untilMs: number } | undefined

  const fetchFrom = async (url: string): Promise<string> => {
    const response = await client.get(url)
    const { issuer, jwks_uri: uri } = jsonAnswer(response)
    if (issuer !== issuerUrl) throw malformed('the discovery document is for another issuer')
    if (typeof uri !== 'string' || !URL.canParse(uri)) throw malformed('the discovery document has no jwks_uri')
    const { protocol } = new URL(uri)
    if (protocol !== 'https:' && !(protocol === 'http:' && new URL(issuerUrl).protocol === 'http:'))
      throw malformed('jwks_uri is not https')
    known = { uri, untilMs: clock.now() + lifetimeOf(response.headers, clock.now()) }
    return uri
  }

  return {
    async jwksUri() {
      if (known !== undefined && clock.now() < known.untilMs) return known.uri
      const [first, second] = discoveryUrls(issuerUrl)
      try {
        return await fetchFrom(first)
      } catch (error) {
        // A provider that does not answer there will not answer elsewhere; one that has no such page may have the other.
        if (!(error instanceof Failure) || error.code !== 'identity_provider_error') throw error
        return await fetchFrom(second).catch((other: unknown) => {
          throw other instanceof Failure && other.code !== 'identity_provider_error' ? other : error
        })
      }
    },
    forget() {
      known = undefined
    },
  }
}

const malformed = (detail: string) => new Failure('identity_provider_error', { detail })
