import { parseGoDuration } from '../../fields/index.ts'
import type { Seal } from '../../storage/index.ts'
import type { ClientNetwork } from '../client-network.ts'
import type { AuthServerConfig } from '../config.ts'
import type { AuthServerDeps } from '../deps.ts'
import type { ResourceNames } from '../resource-names.ts'
import { type GrantType, readsDocuments } from './client.ts'
import { createConfiguredClients } from './configured.ts'
import { createClientDirectory } from './directory.ts'
import { createClientDocuments, DOCUMENT_DEADLINE_MS } from './documents.ts'
import { capabilitiesOf } from './metadata.ts'

/** Response size limit of client-supplied URLs (key sets); documents have their own. */
const CLIENT_BYTES = 64 * 1024

/** Creates the client directory of a server. */
export function openClients(
  config: AuthServerConfig,
  deps: AuthServerDeps,
  seal: Seal,
  {
    resources,
    grantTypes,
    clientNetwork,
  }: {
    readonly resources: ResourceNames
    readonly grantTypes: readonly GrantType[]
    readonly clientNetwork: ClientNetwork
  },
) {
  const { clock, log, metrics, store } = deps
  const outbound = openClientOutbound(config, deps)
  const { cimd } = config.spec
  const capabilities = capabilitiesOf(config.spec, { scopes: resources.scopes, grantTypes })
  const documents = readsDocuments(config.spec)
    ? createClientDocuments({
        outbound,
        clientNetwork,
        capabilities,
        clock,
        log,
        most: cimd?.cacheMaxSize,
        fallbackMs: parseGoDuration(cimd?.cacheFallbackTtl ?? ''),
      })
    : undefined
  const most = config.spec.limits?.registeredClients
  const clients = createClientDirectory({
    store,
    seal,
    documents,
    configured: createConfiguredClients(config.spec.clients ?? [], { resources, secrets: deps.secrets }),
    clock,
    metrics,
    server: config.name,
    ...(most === undefined ? {} : { most }),
  })
  return { outbound, clients, capabilities }
}

/** Outbound HTTP for client-supplied URLs (documents and key sets), through the address guard (authserver.md §3). */
function openClientOutbound({ name, spec }: AuthServerConfig, { outbound, secrets }: AuthServerDeps) {
  const { allowPrivateIP = false, caBundleRef } = spec.clientMetadata ?? {}
  const bundle = caBundleRef === undefined ? undefined : secrets.handle(caBundleRef)
  let pem: { readonly version: number; readonly bytes: Buffer } | undefined
  const caCert = (): Buffer | undefined => {
    if (bundle !== undefined && bundle.version !== 0 && bundle.version !== pem?.version)
      pem = { version: bundle.version, bytes: Buffer.from(bundle.current().reveal()) }
    return pem?.bytes
  }
  return outbound({
    name: `clients of ${name}`,
    deadlineMs: DOCUMENT_DEADLINE_MS,
    maxBytes: CLIENT_BYTES,
    // A client whose host is down must not affect other clients.
    breaker: false,
    guard: { allowPrivateIP, configuredUrls: allowPrivateIP ? ['https://localhost/'] : [] },
    ...(bundle === undefined ? {} : { caCert }),
  })
}
