import { type Clock, Failure, type SecretHandle } from '../core/index.ts'
import { shownUrl } from '../http/index.ts'
import { createClientAssertion } from './client-assertion.ts'
import { createCertificatePair } from './client-certificate.ts'
import type { ClientEndpoint, ClientSettings, OAuthClient } from './client-settings.ts'
import { basicCredentials } from './form-post.ts'
import { jwtEndMs } from './token-shape.ts'

const ASSERTION_TYPES = {
  'jwt-bearer': 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  'jwt-spiffe': 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe',
} as const

const idOf = (clientId: string | undefined): (readonly [string, string])[] =>
  clientId === undefined ? [] : [['client_id', clientId]]

/** Reads the token file; rereads it when the token has expired, since its renewal may be late. */
async function tokenNow(handle: SecretHandle, clock: Clock): Promise<string> {
  const hasEnded = (text: string): boolean => (jwtEndMs(text) ?? Infinity) <= clock.now()
  const text = handle.current().reveal()
  if (!hasEnded(text)) return text
  await handle.refresh()
  const again = handle.current().reveal()
  if (!hasEnded(again)) return again
  throw new Failure('secret_unavailable', { detail: `the token in ${handle.label} has expired` })
}

function audienceAt({ url, issuer }: ClientEndpoint, wanted: string | undefined): string {
  if (wanted === 'tokenEndpoint') return url
  if (wanted === undefined) return issuer ?? url
  if (wanted !== 'issuer') return wanted
  if (issuer !== undefined) return issuer
  throw new Failure('config_error', { detail: 'assertionAudience "issuer" requires discovery of the issuer' })
}

/**
 * Creates the authentication of a client: HTTP Basic with id and secret (RFC 6749 §2.3.1), both in the body, an
 * assertion (RFC 7523 §2.2) signed here or read from a file (projected token, JWT-SVID), a TLS certificate (RFC 8705
 * §2), or `client_id` alone. An expired or unreadable credential is `secret_unavailable`; no other method is tried.
 */
export function createClientAuthentication(settings: ClientSettings, clock: Clock): OAuthClient {
  const { clientId } = settings
  const client = (
    authenticate: OAuthClient['authenticate'],
    secrets: readonly SecretHandle[],
    more: Partial<OAuthClient> = {},
  ): OAuthClient => ({ authenticate, secrets, lasting: secrets, certificate: undefined, ...more })

  switch (settings.method) {
    case 'none': {
      const fixed = { form: idOf(clientId), headers: {} }
      return client(() => Promise.resolve(fixed), [])
    }
    case 'clientSecretBasic': {
      const { secret } = settings
      const basic = () => basicCredentials(settings.clientId, secret.current())
      return client(async () => ({ form: [], headers: { authorization: basic() } }), [secret])
    }
    case 'clientSecretPost': {
      const { secret } = settings
      const form = () => [...idOf(clientId), ['client_secret', secret.current().reveal()] as const]
      return client(async () => ({ form: form(), headers: {} }), [secret])
    }
    case 'privateKeyJwt': {
      const { key, audience } = settings
      const assertion = createClientAssertion(settings.clientId, key, clock)
      return client(
        async (endpoint) => asserted(clientId, 'jwt-bearer', await assertion(audienceAt(endpoint, audience))),
        key.certificate === undefined ? [key.secret] : [key.secret, key.certificate],
        // A renewed certificate with the same key identifies the same client.
        { lasting: [key.secret] },
      )
    }
    case 'tokenFile': {
      const { token, type } = settings
      return client(async () => asserted(clientId, type, await tokenNow(token, clock)), [token], { lasting: [] })
    }
    default: {
      const pair = createCertificatePair(settings.certificate, settings.key, clock)
      const authenticate: OAuthClient['authenticate'] = async ({ url }) => {
        if (new URL(url).protocol !== 'https:')
          throw new Failure('config_error', {
            detail: `the client certificate in secret ${settings.certificate.label} requires TLS, but ${shownUrl(url)} is plain http`,
          })
        pair.check()
        return { form: idOf(clientId), headers: {} }
      }
      return client(authenticate, [settings.certificate, settings.key], {
        lasting: [settings.key],
        certificate: () => pair.current(),
      })
    }
  }
}

const asserted = (clientId: string | undefined, type: keyof typeof ASSERTION_TYPES, assertion: string) => ({
  form: [
    ...idOf(clientId),
    ['client_assertion_type', ASSERTION_TYPES[type]] as const,
    ['client_assertion', assertion] as const,
  ],
  headers: {},
})
