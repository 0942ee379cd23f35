import {
  type Clock,
  type EpochMs,
  Failure,
  type OnBehalf,
  type Outbound,
  type OutboundResponse,
} from '../core/index.ts'
import { outboundFailure, type ServiceFailures } from '../net/index.ts'
import type { Provider as ProviderSettings } from '../resources/index.ts'
import { type Documents, documentRequest, expectOk, getDocument, serviceOf } from './documents.ts'
import { postForm } from './form-post.ts'
import { createClientAuthentication } from './client-authentication.ts'
import type { OAuthClient } from './client-settings.ts'
import { type ClientDeps, openClient } from './open-client.ts'
import type { ProviderFiles, SecretFile } from './provider-file.ts'
import { errorOf, meantBy } from './refusals.ts'
import { askTokenEndpoint } from './token-endpoint.ts'

/** HTTP client of one provider, with its credentials. */
export interface ProviderClient extends Documents {
  /** Posts a form with the introspection credentials; resolves to the 200 response. Throws `Failure` otherwise. */
  post(url: string, form: Readonly<Record<string, string>>, onBehalfOf: OnBehalf): Promise<OutboundResponse>
}

const IDENTITY_PROVIDER = serviceOf('identity provider')
const INTROSPECTION: ServiceFailures = { ...serviceOf('introspection endpoint'), isAboutTokens: true }

/**
 * As `expectOk`, for introspection, where `invalid_client` means wrong credentials of the proxy (RFC 7662 §2.3, RFC
 * 6749 §5.2): `config_error`, as for exchanges (decisions §5).
 */
function expectIntrospected(
  response: OutboundResponse,
  provider: string,
  asked: { readonly url: string; readonly nowMs: EpochMs },
): OutboundResponse {
  const { status } = response
  const error = errorOf(response) ?? ''
  if ((status === 400 || status === 401) && meantBy(error, status) === 'invalid_client')
    throw new Failure('config_error', {
      detail: `the introspection endpoint of provider ${provider} answered ${status} ${error}: check clientId, clientSecretFile, clientAuth and authTokenFile`,
    })
  return expectOk(response, { ...asked, service: INTROSPECTION })
}

/**
 * The introspection client from the provider's `clientAuth` or its top-level fields. Undefined without credentials.
 * Throws `config_error`.
 */
export function openIntrospectionClient(
  { name, clientId, clientAuth }: ProviderSettings,
  { clientSecret }: ProviderFiles,
  { clock, client: deps }: { readonly clock: Clock; readonly client?: Omit<ClientDeps, 'clock'> | undefined },
): OAuthClient | undefined {
  if (clientAuth !== undefined) {
    if (deps === undefined)
      throw new Failure('config_error', {
        detail: `clientAuth of provider ${name} needs secrets, which are unavailable here`,
      })
    return openClient(clientAuth, { clock, ...deps })
  }
  if (clientId === undefined || clientSecret === undefined) return undefined
  return createClientAuthentication({ method: 'clientSecretBasic', clientId, secret: clientSecret }, clock)
}

type Form = Readonly<Record<string, string>>

/**
 * Creates the client of one provider (`get` for documents and keys, `post` for introspection). `authTokenFile` is
 * sent only to the origins of configured URLs, never to one named by a document or redirect, and never replaces
 * client credentials (decisions §2.6). A rejection rereads the credential's file once.
 */
export function createProviderClient(
  provider: ProviderSettings,
  files: ProviderFiles,
  ways: {
    readonly get: Outbound
    readonly post: Outbound
    /** The introspection client; undefined: unauthenticated. */
    readonly client: OAuthClient | undefined
    readonly clock: Clock
  },
): ProviderClient {
  const { get, post, client, clock } = ways
  const ownOrigins = new Set(
    [provider.issuerUrl, provider.jwksUrl, provider.introspectionUrl]
      .filter((url) => url !== undefined)
      .map((url) => new URL(url).origin),
  )

  const authTokenFor = (url: string): SecretFile | undefined =>
    ownOrigins.has(new URL(url).origin) ? files.authToken : undefined

  const checkFiles = () => {
    if (files.caCert !== undefined && files.caCert() === undefined)
      throw new Failure('config_error', {
        detail: `caCertPath of provider ${provider.name} holds no certificates: ${provider.caCertPath}`,
      })
  }

  /** Sends the value of `file`; retries once when a 401 turns out to be an outdated value. */
  const send = async (
    file: SecretFile | undefined,
    request: (headers: Record<string, string>) => Promise<OutboundResponse>,
    authorization: (file: SecretFile) => string,
  ): Promise<OutboundResponse> => {
    checkFiles()
    const attempt = async () => {
      const headers: Record<string, string> = file === undefined ? {} : { authorization: authorization(file) }
      try {
        return await request(headers)
      } catch (error) {
        throw outboundFailure(error, IDENTITY_PROVIDER)
      }
    }
    const response = await attempt()
    return response.status === 401 && file !== undefined && (await file.refresh()) ? attempt() : response
  }

  const bearer = (file: SecretFile) => `Bearer ${file.current().reveal()}`

  const getOnce = (url: string) => {
    const request = (headers: Record<string, string>) => get.request(documentRequest(url, headers))
    return send(authTokenFor(url), request, bearer)
  }

  /** As an authenticated client. */
  const postAs = async (own: OAuthClient, url: string, form: Form, onBehalfOf: OnBehalf): Promise<OutboundResponse> => {
    checkFiles()
    const { secrets } = own
    // Assertions use the issuer as audience: the token endpoint is unknown.
    const authenticate = () => own.authenticate({ url, issuer: provider.issuerUrl })
    try {
      return await askTokenEndpoint(
        { outbound: post, client: { authenticate, secrets } },
        { url, form: Object.entries(form), onBehalfOf },
      )
    } catch (error) {
      throw outboundFailure(error, IDENTITY_PROVIDER)
    }
  }

  /** Unauthenticated, or with the client id in the body (RFC 6749 §3.2.1); with `authTokenFile`. */
  const postOpenly = (url: string, form: Form, onBehalfOf: OnBehalf): Promise<OutboundResponse> => {
    const { clientId } = provider
    const fields = clientId === undefined ? form : { ...form, client_id: clientId }
    const request = (headers: Record<string, string>) => postForm(post, { url, form: fields, headers, onBehalfOf })
    return send(authTokenFor(url), request, bearer)
  }

  return {
    get: (url, what) => getDocument(getOnce, url, { what, clock }),
    async post(url, form, onBehalfOf) {
      const response =
        client === undefined ? await postOpenly(url, form, onBehalfOf) : await postAs(client, url, form, onBehalfOf)
      return expectIntrospected(response, provider.name, { url, nowMs: clock.now() })
    },
  }
}
