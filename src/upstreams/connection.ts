import {
  type Claims,
  Failure,
  type MonotonicMs,
  type Outbound,
  OutboundError,
  type OutboundRequest,
  type OutboundResponse,
} from '../core/index.ts'
import { areCertificates } from '../files/index.ts'
import type { SecretRef } from '../fields/index.ts'
import { outboundFailure, within } from '../net/index.ts'
import { type Asked, createDocuments, type Documents, expectOk, jsonAnswer, serviceOf } from '../oauth/index.ts'
import { mayBePrivate, type UpstreamProvider } from '../resources/index.ts'
import type { UpstreamDeps } from './deps.ts'
import type { ShownCertificate } from './upstream-client.ts'

/** The settings of an upstream that its connections depend on. */
export type ConnectedProvider = Pick<UpstreamProvider, 'name' | 'caBundleRef' | 'allowPrivateIP'> &
  Partial<Pick<UpstreamProvider, 'oauth2Config'>>

/** Connections to one upstream, with separate circuits, so that a slow user-info endpoint stops no refresh. */
export interface Connections {
  /** Discovery and keys. */
  readonly documents: Documents
  /** Browser pages, over the same connections. */
  readonly pages: Outbound
  readonly tokens: Outbound
  readonly userInfo: Outbound
  readonly revocations: Outbound
  /** Client registration; opened on the first request. */
  readonly registrations: Outbound
  close(): Promise<void>
}

export const DOCUMENT_DEADLINE_MS = 5000
const DEADLINE_MS = 10_000
/** Only the shutdown of the process waits for it. */
const REVOCATION_DEADLINE_MS = 5000

/** PEM roots from a secret, in one buffer per value, so that connections are reused until it changes. */
export function caCertificate(ref: SecretRef, { secrets }: UpstreamDeps): () => Buffer | undefined {
  const secret = secrets.handle(ref)
  let version = 0
  let pem: Buffer | undefined
  return () => {
    if (secret.version !== 0 && secret.version !== version) {
      version = secret.version
      const now = Buffer.from(secret.current().reveal())
      // An invalid certificate file is ignored: TLS would accept it and trust no server.
      if (pem === undefined || areCertificates(now)) pem = now
    }
    return pem
  }
}

/**
 * Opens the connections to an upstream; `configuredUrls` are exempt from parts of the address guard (decisions §2.6).
 * `certificate` is used at endpoints with client authentication.
 */
export function createConnections(
  provider: ConnectedProvider,
  configuredUrls: readonly string[],
  deps: UpstreamDeps,
  certificate?: ShownCertificate,
  maxPageBytes?: number,
): Connections {
  const { caBundleRef } = provider
  const common = {
    name: provider.name,
    guard: { allowPrivateIP: mayBePrivate(provider), configuredUrls },
    ...(caBundleRef === undefined ? {} : { caCert: caCertificate(caBundleRef, deps) }),
  }
  const ca = caBundleRef === undefined ? '' : `${caBundleRef.name}/${caBundleRef.key}`
  const service = (part: string, ...more: readonly string[]) =>
    JSON.stringify(['upstream', part, ...configuredUrls, ca, ...more])
  const asClient = (part: string) => ({
    ...common,
    service: service(part, ...(certificate === undefined ? [] : [certificate.label])),
    clientCertificate: certificate?.current,
  })
  const pages = deps.outbound({
    ...common,
    service: service('documents'),
    deadlineMs: DOCUMENT_DEADLINE_MS,
    retry: true,
    ...(maxPageBytes === undefined ? {} : { maxBytes: maxPageBytes }),
  })
  // Codes and rotating refresh tokens are single-use: a request that may have arrived is not repeated.
  const tokens = deps.outbound({ ...asClient('tokens'), deadlineMs: DEADLINE_MS })
  const userInfo = deps.outbound({ ...common, service: service('user info'), deadlineMs: DEADLINE_MS, retry: true })
  const revocations = deps.outbound({ ...asClient('revocations'), deadlineMs: REVOCATION_DEADLINE_MS, retry: true })
  // A repeated registration would create another client.
  const registrations = deps.outbound({ ...common, service: service('registrations'), deadlineMs: DEADLINE_MS })
  return {
    documents: createDocuments(pages, deps.clock, unanswered),
    pages,
    tokens,
    userInfo,
    revocations,
    registrations,
    close: async () => {
      await Promise.all([pages.close(), tokens.close(), userInfo.close(), revocations.close(), registrations.close()])
    },
  }
}

/** Sends a request to the endpoint named `where`. Throws as `unanswered`. */
export async function send(outbound: Outbound, request: OutboundRequest, where: string): Promise<OutboundResponse> {
  try {
    return await outbound.request(request)
  } catch (error) {
    throw unanswered(error, where)
  }
}

/** Maps an outbound error: `config_error` for a blocked address, else as everywhere. */
export function unanswered(error: unknown, where: string): Failure {
  // Only the operator can allow this address (`allowPrivateIP`).
  if (error instanceof OutboundError && error.kind === 'blocked_address')
    return new Failure('config_error', { detail: `${where}: ${error.kind}` })
  return outboundFailure(error, serviceOf(where))
}

/** The result of `work`, or `identity_provider_unavailable` at `endsAtMs`. */
export const inTime = <T>(work: Promise<T>, endsAtMs: MonotonicMs, where: string): Promise<T> =>
  within(work, endsAtMs).catch((error: unknown) => {
    throw unanswered(error, where)
  })

/** Failure for an invalid response of an upstream. */
export const unusable = (detail: string): Failure => new Failure('identity_provider_error', { detail })

/** The JSON object of a 200 response. Throws `identity_provider_unavailable` and `identity_provider_error`. */
export const okJson = (response: OutboundResponse, where: string, at: Pick<Asked, 'url' | 'nowMs'>): Claims =>
  jsonAnswer(expectOk(response, { ...at, service: serviceOf(where) }), where)
