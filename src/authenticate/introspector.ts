import { type Claims, type ClaimValue, Failure, type OnBehalf } from '../core/index.ts'
import { type ProviderClient, jsonAnswer } from '../oauth/index.ts'

/** An introspection response (RFC 7662 §2.2). */
export type Introspection =
  | { readonly isActive: false }
  /** All fields of the response; `bytes` is its length, to bound the cache. */
  | { readonly isActive: true; readonly claims: Claims; readonly bytes: number }

/** Introspects a token at one provider, attributed to `by`. Throws `Failure` without a reliable response. */
export type Introspect = (token: string, by: OnBehalf) => Promise<Introspection>

/**
 * Introspection at `url`. Whatever is not a well-formed answer is 503 `identity_provider_unavailable` (decisions §2.3:
 * none active and one failed), so that a provider's trouble never looks like a bad token; `secret_unavailable` while a
 * credential file has never been readable.
 */
export function createIntrospect(url: string, client: ProviderClient): Introspect {
  return async (token, by) => {
    try {
      const form = { token, token_type_hint: 'access_token' }
      const response = await client.post(url, form, by)
      const claims = withoutNull(jsonAnswer(response, 'introspection endpoint'))
      const { active } = claims
      if (typeof active !== 'boolean')
        throw new Failure('identity_provider_error', { detail: 'active is not a boolean' })
      return active ? { isActive: true, claims, bytes: response.body.length } : { isActive: false }
    } catch (error) {
      throw asUnavailable(error)
    }
  }
}

/** `null` means absent (decisions §2.7): some servers send all known fields. */
const withoutNull = (answer: Claims): Claims =>
  Object.freeze(
    Object.assign(
      Object.create(null) as Record<string, ClaimValue>,
      Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== null)),
    ),
  )

/** Default Retry-After in seconds. */
const COME_BACK_SECONDS = 5

function asUnavailable(error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  if (error.code !== 'identity_provider_error' && error.code !== 'identity_provider_unavailable') return error
  return new Failure('identity_provider_unavailable', {
    detail: error.detail ?? 'invalid response',
    cause: error.cause,
    rule: error.rule,
    refusal: error.refusal,
    retryAfterSeconds: error.retryAfterSeconds ?? COME_BACK_SECONDS,
  })
}
