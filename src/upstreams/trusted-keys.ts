import { createDocuments, createKeyDiscovery, createKeyStore, type KeyStore } from '../oauth/index.ts'
import type { TrustedIssuer } from '../resources/index.ts'
import { caCertificate, DOCUMENT_DEADLINE_MS, unanswered } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { noteKeys } from './key-notes.ts'

/** The keys of a trusted assertion issuer. */
export interface TrustedKeys {
  readonly keys: KeyStore
  close(): Promise<void>
}

/**
 * Discovers, caches and refreshes keys as for callers' providers (decisions §2.3, §2.4); fetches nothing before the
 * first assertion.
 */
export function createTrustedKeys(issuer: TrustedIssuer, deps: UpstreamDeps): TrustedKeys {
  const { issuerUrl, jwksUrl, caBundleRef, allowPrivateIP } = issuer
  const { clock, log } = deps
  const configuredUrls = jwksUrl === undefined ? [issuerUrl] : [issuerUrl, jwksUrl]
  const ca = caBundleRef === undefined ? '' : `${caBundleRef.name}/${caBundleRef.key}`
  const outbound = deps.outbound({
    name: `assertions of ${issuerUrl}`,
    service: JSON.stringify(['assertions', ...configuredUrls, ca]),
    guard: { allowPrivateIP, configuredUrls },
    deadlineMs: DOCUMENT_DEADLINE_MS,
    retry: true,
    ...(caBundleRef === undefined ? {} : { caCert: caCertificate(caBundleRef, deps) }),
  })
  const documents = createDocuments(outbound, clock, unanswered)
  const location = jwksUrl ?? createKeyDiscovery(issuerUrl, documents, clock)
  const onFetched = noteKeys({ issuer: issuerUrl }, 'assertions', log)
  return { keys: createKeyStore({ clock, documents, location, onFetched }), close: () => outbound.close() }
}
