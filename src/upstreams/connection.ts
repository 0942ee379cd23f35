import {
  type Claims,
  Failure,
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

/** The ways to one upstream: a circuit each, so that a slow user-info endpoint stops no refresh. */
export interface Connections {
  /** Discovery and keys. */
  readonly documents: Documents
  /** Pages for browsers, over the same connections. */
  readonly pages: Outbound
  readonly tokens: Outbound
  readonly userInfo: Outbound
  readonly revocations: Outbound
  /** Where we register ourselves; nothing is opened before the first request. */
  readonly registrations: Outbound
  close(): Promise<void>
}

export const DOCUMENT_DEADLINE_MS = 5000
const DEADLINE_MS = 10_000
/** Nobody waits for it but the end of the process. */
const REVOCATION_DEADLINE_MS = 5000

/** PEM roots from a secret, in one buffer per value so that connections live as long as it does. */
export function caCertificate(ref: SecretRef, { secrets }: UpstreamDeps): () => Buffer | undefined {
  const secret = secrets.handle(ref)
  let version = 0
  let pem: Buffer | undefined
  return () => {
    if (secret.version !== 0 && secret.version !== version) {
      version = secret.version
      const now = Buffer.from(secret.current().reveal())
      // What is no certificate keeps the ones from before: TLS would take it, and trust nobody.
      if (pem === undefined || areCertificates(now)) pem = now
    }
    return pem
  }
}

/**
 * The ways to an upstream, `configuredUrls` being those that its configuration names (decisions §2.6 for the guard). `certificate` is
 * shown where we are a client.
 */
export function createConnections(
  provider: UpstreamProvider,
  configuredUrls: readonly string[],
  deps: UpstreamDeps,
  certificate?: ShownCertificate,
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
  })
  // Codes and rotating refresh tokens are good for one request: what may have arrived is not sent again.
  const tokens = deps.outbound({ ...asClient('tokens'), deadlineMs: DEADLINE_MS })
  const userInfo = deps.outbound({ ...common, service: service('user info'), deadlineMs: DEADLINE_MS, retry: true })
  const revocations = deps.outbound({ ...asClient('revocations'), deadlineMs: REVOCATION_DEADLINE_MS, retry: true })
  // What may have arrived is not sent again: it would be another client.
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

/** Sends a request to `where` (our word for it). Throws what `unanswered` says. */
export async function send(outbound: Outbound, request: OutboundRequest, where: string): Promise<OutboundResponse> {
  try {
    return await outbound.request(request)
  } catch (error) {
    throw unanswered(error, where)
  }
}

/** Why there was no answer of `where`, as a failure: `config_error` for an address that is not allowed, else as everywhere. */
export function unanswered(error: unknown, where: string): Failure {
  // Only the operator can say that this address is meant (`allowPrivateIP`).
  if (error instanceof OutboundError && error.kind === 'blocked_address')
    return new Failure('config_error', { detail: `${where}: ${error.kind}` })
  return outboundFailure(error, serviceOf(where))
}

/** What `work` gives, or `identity_provider_unavailable` at `endsAtMs` (`performance.now()`). */
export const inTime = <T>(work: Promise<T>, endsAtMs: number, where: string): Promise<T> =>
  within(work, endsAtMs).catch((error: unknown) => {
    throw unanswered(error, where)
  })

/** What an upstream answered can't be used. */
export const unusable = (detail: string): Failure => new Failure('identity_provider_error', { detail })

/** The JSON object of a 200 answer. Throws `identity_provider_unavailable` and `identity_provider_error`. */
export const okJson = (response: OutboundResponse, where: string, at: Pick<Asked, 'url' | 'nowMs'>): Claims =>
  jsonAnswer(expectOk(response, { ...at, service: serviceOf(where) }), where)
