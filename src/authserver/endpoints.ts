import { type Clock, type LocalHandler, type LocalRequest, type Log } from '../core/index.ts'
import type { Addresses, Callback } from './addresses.ts'
import type { ClientNetwork } from './client-network.ts'
import { REGISTRATION_BYTES, registerClient } from './clients/registration.ts'
import type { ServerCapabilities } from './clients/metadata.ts'
import { type Offers, openidConfiguration, serverMetadata } from './discovery.ts'
import type { KeyRing } from '../signing/index.ts'
import type { Authorize } from './login/authorize.ts'
import { createBrowserEndpoints, readForm } from './browser-endpoint.ts'
import { CONSENT_FORM_BYTES, type ConsentStep } from './login/consent.ts'
import { PERSON_PARAMETER, type PersonSteps } from './login/person-logins.ts'
import type { UpstreamRedirects } from './login/upstream-redirects.ts'
import type { Visit } from './login/parts.ts'
import type { Audit } from './deps.ts'
import { OAuthError } from './oauth-error.ts'
import type { Limit } from './rates.ts'
import { documentResponse, jsonResponse, type Reply } from './reply.ts'
import type { ResourceNames } from './resource-names.ts'
import { storeFailure } from './store-failure.ts'
import { createTokenEndpoint, type TokenEndpointParts } from './token-endpoint.ts'

/** Form size limit of the token and revocation endpoints, in bytes. */
const TOKEN_FORM_BYTES = 56 * 1024

export interface EndpointParts extends Omit<TokenEndpointParts, 'issuer' | 'grantTypes'> {
  readonly addresses: Addresses
  readonly resources: ResourceNames
  readonly offers: Offers
  /** Limits of client metadata. */
  readonly capabilities: ServerCapabilities
  readonly ring: KeyRing
  readonly authorize: Authorize
  readonly consent: ConsentStep
  readonly upstreamRedirects: UpstreamRedirects
  readonly persons: PersonSteps
  readonly clientNetwork: ClientNetwork
  readonly limits: { readonly registration: Limit; readonly authorize: Limit; readonly token: Limit }
  readonly clock: Clock
  readonly audit: Audit
  readonly log: Log
}

/** Creates all endpoints of a server (authserver.md §3). */
export function createEndpoints(parts: EndpointParts): readonly LocalHandler[] {
  return [...documentEndpoints(parts), ...clientEndpoints(parts), ...browserEndpoints(parts)]
}

function documentEndpoints({ addresses, resources, offers, ring }: EndpointParts): LocalHandler[] {
  const document = (path: string, render: () => Buffer): LocalHandler => ({
    path,
    methods: ['GET'],
    bodyLimitBytes: 0,
    cors: 'any_origin',
    handle: () => documentResponse(render()),
  })
  const metadata = serverMetadata(addresses, resources, offers)
  const rendered = Buffer.from(JSON.stringify(metadata))
  const openid = (): Buffer => Buffer.from(JSON.stringify(openidConfiguration(metadata, ring.keys())))
  return [
    ...addresses.metadataPaths.map((path) => document(path, () => rendered)),
    ...addresses.openidPaths.map((path) => document(path, openid)),
    document(addresses.jwksPath, () => ring.document()),
  ]
}

function clientEndpoints(parts: EndpointParts): LocalHandler[] {
  const { addresses, clientNetwork, limits, clients, capabilities, offers, audit } = parts
  const { token, revoke } = createTokenEndpoint({ ...parts, issuer: addresses.issuer, grantTypes: offers.grantTypes })
  const post = (url: string, bodyLimitBytes: number, limit: Limit, work: LocalHandler['handle']): LocalHandler => ({
    path: new URL(url).pathname,
    methods: ['POST'],
    bodyLimitBytes,
    cors: 'any_origin',
    async handle(request) {
      limit(request.client.address)
      try {
        return await clientNetwork.run(request.client.address, async () => work(request))
      } catch (error) {
        if (!(error instanceof OAuthError)) throw storeFailure(error)
        return jsonResponse(error.status, { error: error.error, error_description: error.description })
      }
    },
  })
  return [
    post(addresses.tokenUrl, TOKEN_FORM_BYTES, limits.token, token),
    post(addresses.revokeUrl, TOKEN_FORM_BYTES, limits.token, revoke),
    post(addresses.registerUrl, REGISTRATION_BYTES, limits.registration, async (request) => {
      const contentType = request.request.headers['content-type']
      const client = await registerClient({ contentType, body: request.body }, { clients, capabilities })
      audit({
        type: 'client_registered',
        outcome: 'success',
        requestId: request.id,
        clientId: client.client_id,
        details: { redirectUris: client.redirect_uris },
      })
      return jsonResponse(201, client)
    }),
  ]
}

function browserEndpoints(parts: EndpointParts): LocalHandler[] {
  const { addresses, clientNetwork, limits, authorize, consent, upstreamRedirects, persons, log } = parts
  const ownOrigins = [
    ...new Set([new URL(addresses.authorizeUrl).origin, ...addresses.callbacks.map(({ origin }) => origin)]),
  ]
  const browser = createBrowserEndpoints({ clientNetwork, limit: limits.authorize, ownOrigins, log })
  const byPath = (pathOf: (callback: Callback) => string): [string, readonly Callback[]][] => [
    ...Map.groupBy(addresses.callbacks, pathOf),
  ]
  const withForm = { methods: ['GET', 'POST'], bodyLimitBytes: CONSENT_FORM_BYTES }
  return [
    ...addresses.authorizePaths.map((path) => browser(path, ({ query }, visit) => authorize(query, visit))),
    ...byPath(({ path }) => path).map(([path, callbacks]) => {
      const takesForeignForms = callbacks.some(({ takesForms }) => takesForms)
      const work = (request: LocalRequest, visit: Visit): Promise<Reply> | Reply =>
        request.method === 'POST'
          ? postedBack(readForm(request))
          : upstreamRedirects.handleCallback(request.query, callbacks, visit)
      return browser(path, work, takesForeignForms ? { ...withForm, takesForeignForms } : undefined)
    }),
    ...byPath(({ continuePath }) => continuePath).map(([path, callbacks]) => {
      const work = (request: LocalRequest, visit: Visit): Promise<Reply> => {
        if (request.method === 'POST') return consent.submit(readForm(request), callbacks, visit)
        const person = new URLSearchParams(request.query).get(PERSON_PARAMETER)
        return person === null ? consent.handedOver(request.query, visit) : persons.begin(person, visit)
      }
      return browser(path, work, withForm)
    }),
  ]
}

const CALLBACK_PARAMETERS = ['code', 'state', 'iss', 'error'] as const

/**
 * A `form_post` response (OAuth 2.0 Form Post Response Mode). Browsers send no cookies with cross-site forms, so the
 * login continues with a GET of the same address.
 */
export function postedBack(form: URLSearchParams): Reply {
  const query = new URLSearchParams()
  for (const name of CALLBACK_PARAMETERS) for (const value of form.getAll(name)) query.append(name, value)
  return { kind: 'redirect', url: `?${query.toString()}` }
}
