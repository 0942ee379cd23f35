import { type Claims, type EpochMs, Failure, isDuring, type Pause, Secret, type SecretHandle } from '../core/index.ts'
import { isRecord } from '../fields/index.ts'
import { authMethodsIn, endpointOf, errorOf, expectOk, jsonAnswer, serviceOf } from '../oauth/index.ts'
import type { OAuth2Config } from '../resources/index.ts'
import { type Connections, send, unusable } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { clientWithSecret, type KnownClient, type UpstreamClient } from './upstream-client.ts'

export type Registration = NonNullable<OAuth2Config['dcrConfig']>

const WHERE = 'registration endpoint'
const METHODS = ['client_secret_basic', 'client_secret_post', 'none'] as const
type Method = (typeof METHODS)[number]
const MOST_TEXT = 4096
/** Visible ASCII (RFC 6749 appendix A.1, A.2). */
const TEXT = /^[\x21-\x7e]+$/
/** The stored registration is reread, since another replica may have replaced it. */
const LOOK_AGAIN_MS = 60_000
/** Pause after a failure, so that logins can't cause more requests. */
const PAUSE_MS = 15_000
/** A client that expires soon is not used for a new login. */
const MARGIN_MS = 10 * 60_000
/** A client rejected sooner after its registration is not replaced, since a new one would fare no better. */
const LEAST_AGE_MS = 60_000

/** The stored form of a registered client. */
interface Kept {
  readonly clientId: string
  readonly clientSecret: string | undefined
  readonly method: Method
  readonly atMs: EpochMs
  readonly endsAtMs: EpochMs | undefined
}

export interface RegisteredClientOptions {
  readonly registration: Registration
  readonly scopes: readonly string[]
  /** The upstream's name. */
  readonly name: string
  /** Client authentication to register. Default: by `discoveryUrl`, else HTTP Basic. */
  readonly method?: Method | undefined
  /** `application_type` to register; none by default. */
  readonly applicationType?: 'web' | 'native'
}

/**
 * A client that registers itself at the upstream (RFC 7591), once for all replicas; the result is kept in the store.
 * Throws `config_error` when the upstream rejects the registration, else as `Upstream`.
 */
export function createRegisteredClient(
  options: RegisteredClientOptions,
  connections: Pick<Connections, 'documents' | 'registrations'>,
  deps: UpstreamDeps,
): UpstreamClient {
  const { clock, registration: own } = deps
  const { name, scopes } = options
  const redirectUris = own?.redirectUris(name) ?? []
  const register = createRegistration({ ...options, redirectUris }, connections, deps)
  // Another configuration means another client.
  const { softwareId, softwareStatement, discoveryUrl, registrationEndpoint } = options.registration
  const id = [name, discoveryUrl, registrationEndpoint, softwareId, softwareStatement, scopes, redirectUris]
  const isUsable = (value: Buffer): boolean => {
    const kept = readKept(value)
    if (kept?.endsAtMs === undefined) return kept !== undefined
    return kept.endsAtMs - Math.min(MARGIN_MS, (kept.endsAtMs - kept.atMs) / 2) > clock.now()
  }
  let known: (Pause & { readonly client: KnownClient; readonly value: Buffer }) | undefined
  let failed: (Pause & { readonly error: unknown }) | undefined
  let flight: Promise<KnownClient> | undefined
  const pauseOf = (ms: number): Pause => ({ sinceMs: clock.now(), untilMs: clock.now() + ms })

  const registerAtTimes = async (): Promise<Buffer> => {
    if (isDuring(failed, clock.now())) throw failed.error
    try {
      return await register()
    } catch (error) {
      failed = { error, ...pauseOf(PAUSE_MS) }
      throw error
    }
  }

  const look = async (): Promise<KnownClient> => {
    if (own === undefined) throw new Failure('config_error', { detail: `${name}: the client is not registered` })
    const value = await own.kept.obtain(id, isUsable, registerAtTimes)
    const kept = readKept(value)
    if (kept === undefined) throw unusable(`${WHERE}: the stored registration is invalid`)
    const client = known?.value.equals(value) === true ? known.client : clientOf(kept, deps)
    known = { client, value, ...pauseOf(LOOK_AGAIN_MS) }
    return client
  }

  return {
    current: async () => {
      if (isDuring(known, clock.now()) && isUsable(known.value)) return known.client
      flight ??= look().finally(() => (flight = undefined))
      return flight
    },
    async refused(client) {
      if (known?.client !== client) return
      const { value } = known
      const { atMs = 0 } = readKept(value) ?? {}
      if (isDuring({ sinceMs: atMs, untilMs: atMs + LEAST_AGE_MS }, clock.now())) return
      known = undefined
      await own?.kept.forget(id, value)
    },
  }
}

function clientOf({ clientId, clientSecret, method }: Kept, { clock }: UpstreamDeps): KnownClient {
  const secret = clientSecret === undefined ? undefined : fixed(new Secret(clientSecret))
  const client = clientWithSecret(clientId, secret, clock)
  // The registered method, whatever else the endpoint supports.
  return { clientId, authentication: () => client.authentication(method === 'client_secret_post') }
}

const fixed = (secret: Secret): SecretHandle => ({
  label: 'registered client',
  current: () => secret,
  version: 1,
  refresh: () => Promise.resolve(false),
})

/** Registers, and returns the value to store, unsealed. */
function createRegistration(
  {
    registration,
    scopes,
    redirectUris,
    method: wanted,
    applicationType,
  }: RegisteredClientOptions & { readonly redirectUris: readonly string[] },
  { documents, registrations: outbound }: Pick<Connections, 'documents' | 'registrations'>,
  { clock, secrets }: UpstreamDeps,
): () => Promise<Buffer> {
  const { discoveryUrl, registrationEndpoint, initialAccessTokenRef, softwareId, softwareStatement } = registration
  const token = initialAccessTokenRef === undefined ? undefined : secrets.handle(initialAccessTokenRef)

  const place = async (): Promise<{ readonly url: string; readonly method: Method }> => {
    if (discoveryUrl === undefined) return { url: registrationEndpoint ?? '', method: wanted ?? 'client_secret_basic' }
    const document = jsonAnswer(await documents.get(discoveryUrl, 'discovery document'), 'discovery document')
    const offered = authMethodsIn(document) ?? METHODS
    return {
      url: endpointOf(document, 'registration_endpoint', discoveryUrl),
      method: METHODS.find((one) => offered.includes(one)) ?? 'client_secret_basic',
    }
  }

  return async () => {
    const { url, method } = await place()
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'mcp-extauth',
      ...(token === undefined ? {} : { authorization: `Bearer ${token.current().reveal()}` }),
    }
    const metadata = {
      client_name: 'mcp-extauth',
      redirect_uris: redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: method,
      ...(applicationType === undefined ? {} : { application_type: applicationType }),
      ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
      ...(softwareId === undefined ? {} : { software_id: softwareId }),
      ...(softwareStatement === undefined ? {} : { software_statement: softwareStatement }),
    }
    const response = await send(outbound, { method: 'POST', url, headers, body: JSON.stringify(metadata) }, WHERE)
    const { status } = response
    if (status === 400 || status === 401 || status === 403) throw refusedAs(errorOf(response), status)
    if (status !== 201) expectOk(response, { url, service: serviceOf(WHERE), nowMs: clock.now() })
    return Buffer.from(JSON.stringify(readAnswer(jsonAnswer(response, WHERE), method, clock.now())))
  }
}

/** The error code only: other text of an upstream is not logged. */
function refusedAs(error: string | undefined, status: number): Failure {
  const why = error !== undefined && /^[a-z_]{1,64}$/.test(error) ? error : `status ${status}`
  return new Failure('config_error', { detail: `${WHERE}: the upstream rejected the registration (${why})` })
}

/** RFC 7591 §3.2.1: the upstream may change the requested registration. */
function readAnswer(answer: Claims, asked: Method, nowMs: EpochMs): Kept {
  const textAt = (name: string): string | undefined => {
    const value = answer[name] ?? undefined
    if (value === undefined || value === '') return undefined
    if (typeof value === 'string' && value.length <= MOST_TEXT && TEXT.test(value)) return value
    throw unusable(`${WHERE}: ${name} is invalid`)
  }
  const clientId = textAt('client_id')
  if (clientId === undefined) throw unusable(`${WHERE}: the response has no client_id`)
  const registered = answer['token_endpoint_auth_method'] ?? asked
  const method = METHODS.find((one) => one === registered)
  if (method === undefined) throw unusable(`${WHERE}: token_endpoint_auth_method is not supported`)
  const clientSecret = textAt('client_secret')
  if (method !== 'none' && clientSecret === undefined) throw unusable(`${WHERE}: the response has no client_secret`)
  const ends = answer['client_secret_expires_at']
  return {
    clientId,
    clientSecret: method === 'none' ? undefined : clientSecret,
    method,
    atMs: nowMs,
    endsAtMs: typeof ends === 'number' && ends > 0 ? ends * 1000 : undefined,
  }
}

/** Sealed values come from this server only. */
function readKept(value: Buffer): Kept | undefined {
  const kept: unknown = JSON.parse(value.toString())
  return isRecord(kept) && typeof kept['clientId'] === 'string' ? (kept as typeof kept & Kept) : undefined
}
