import type { Claims, Clock, Log, Outbound, OutboundResponse } from '../../core/index.ts'
import { readJsonObject } from '../../http/index.ts'
import type { ClientNetwork } from '../client-network.ts'
import { OAuthError } from '../oauth-error.ts'
import type { Client } from './client.ts'
import { createFetched } from './fetched.ts'
import { type ServerCapabilities, readClientMetadata } from './metadata.ts'

const MOST_ID = 2_048
const MOST_CACHED = 1_000

/** Deadline for fetching a document, in milliseconds (authserver.md §3). */
export const DOCUMENT_DEADLINE_MS = 5_000
const DOCUMENT_BYTES = 10 * 1024

/**
 * Whether a `client_id` is the URL of a metadata document: https with a path, without fragment, user information, dot segments
 * and backslashes (draft-ietf-oauth-client-id-metadata-document §3).
 */
export function isDocumentId(id: string): boolean {
  if (id.length > MOST_ID || !/^https:\/\/[^\s/?#@\\]+\/[^\s#\\]*$/.test(id) || !/^[\x21-\x7e]+$/.test(id)) return false
  const url = URL.parse(id)
  if (url === null || url.pathname === '/') return false
  const segments = (id.slice(8).split('?')[0] ?? '').split('/').slice(1)
  return segments.every((segment) => !/^(?:\.|%2e){1,2}$/i.test(segment))
}

/** Clients identified by the URL of their metadata document. */
export interface ClientDocuments {
  /**
   * The client of a document, fetched through the address guard and cached for 5 minutes to 24 hours by its cache
   * headers. Throws `OAuthError` `invalid_client` or the defect of the document, `overloaded` when the client network
   * has too many fetches in flight.
   */
  find(id: string): Promise<Client>
}

export function createClientDocuments(options: {
  readonly outbound: Outbound
  readonly capabilities: ServerCapabilities
  readonly clientNetwork: ClientNetwork
  readonly clock: Clock
  readonly log: Log
  /** Maximum number of cached documents. Default 1,000. */
  readonly most?: number | undefined
  /** Cache lifetime without cache headers, in milliseconds. Default 5 minutes. */
  readonly fallbackMs?: number | undefined
}): ClientDocuments {
  return createFetched({
    ...options,
    what: 'client metadata document',
    accept: 'application/json',
    most: options.most ?? MOST_CACHED,
    read: (id, response) =>
      readDocument(id, response, {
        ...options.capabilities,
        onIgnored: (count) =>
          options.log.warn(
            { host: new URL(id).host, count },
            'unusable redirect URIs of a client metadata document ignored',
          ),
      }),
  })
}

const refused = (description: string): OAuthError => new OAuthError('invalid_client', description)

function readDocument(
  id: string,
  response: OutboundResponse,
  capabilities: ServerCapabilities & { readonly onIgnored: (count: number) => void },
): Client {
  if (response.body.length > DOCUMENT_BYTES) throw refused('the client metadata document is too large')
  const type = (response.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== 'application/json' && !/^application\/[^\s;]+\+json$/.test(type))
    throw refused('the client metadata document is not JSON')
  const document: Claims | undefined = readJsonObject(response.body)
  if (document === undefined) throw refused('the client metadata document is not a JSON object')
  if (document.client_id !== id) throw refused('client_id of the client metadata document is not its URL')
  if ((document.client_secret ?? document.client_secret_expires_at ?? undefined) !== undefined)
    throw refused('the client metadata document must not have a secret')
  const metadata = readClientMetadata(document, { from: 'document', ...capabilities })
  return { ...metadata, id, kind: 'document', secretHash: undefined, issuedAt: 0 }
}
