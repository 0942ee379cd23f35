import { createTtlLru, hashKey } from '../../cache/index.ts'
import {
  Failure,
  OutboundError,
  type Claims,
  type Clock,
  type Log,
  type Outbound,
  type OutboundResponse,
} from '../../core/index.ts'
import { readJsonObject } from '../../http/index.ts'
import type { Asker } from '../asker.ts'
import { OAuthError } from '../oauth-error.ts'
import type { Client } from './client.ts'
import { type Known, readClientMetadata } from './metadata.ts'

const MOST_ID = 2_048
const MOST_CACHED = 1_000
const LEAST_CACHED_MS = 5 * 60_000
const MOST_CACHED_MS = 24 * 3_600_000
/** A document that can't be had is not asked for again at once: anybody may name any URL. */
const REFUSED_MS = 15_000

/** Milliseconds that fetching a document may take (authserver.md §3). */
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

/** Clients that are known by the document at their identifier. */
export interface ClientDocuments {
  /**
   * The client of a document, fetched through the address guard or remembered for 5 minutes to 24 hours as its cache headers
   * say. Throws `OAuthError` `invalid_client` or what is wrong with the document, `overloaded` when whoever asks has too many being
   * fetched.
   */
  find(id: string): Promise<Client>
}

type Kept = { readonly client: Client } | { readonly error: OAuthError }

export function createClientDocuments(options: {
  readonly outbound: Outbound
  readonly known: Known
  readonly asker: Asker
  readonly clock: Clock
  readonly log: Log
}): ClientDocuments {
  const { outbound, asker, clock, log } = options
  const kept = createTtlLru<Kept>({ clock, maxEntries: MOST_CACHED })
  const flights = new Map<string, Promise<Client>>()

  const fetchOnce = async (id: string): Promise<Client> => {
    try {
      const response = await outbound.request({
        method: 'GET',
        url: id,
        headers: { accept: 'application/json' },
        onBehalfOf: asker.onBehalf(id),
      })
      const client = readDocument(id, response, options.known)
      kept.set(id, { client }, clock.now() + freshMs(response.headers, clock.now()))
      return client
    } catch (error) {
      // It was never asked for: that says nothing about the client, and must not make it forget its registration.
      if (error instanceof OutboundError && error.kind === 'overloaded')
        throw new Failure('overloaded', { detail: 'client metadata documents', retryAfterSeconds: 1, cause: error })
      const refusal = error instanceof OAuthError ? error : unreachable(error)
      log.info({ problem: refusal.description, host: new URL(id).host }, 'client metadata document refused')
      kept.set(id, { error: refusal }, clock.now() + REFUSED_MS)
      throw refusal
    }
  }

  return {
    async find(id) {
      const known = kept.get(id)
      if (known !== undefined) {
        if ('error' in known) throw known.error
        return known.client
      }
      // One flight for each network: who joined another's would wait in that one's line.
      const key = hashKey([asker.network, id])
      const flight = flights.get(key) ?? fetchOnce(id).finally(() => flights.delete(key))
      flights.set(key, flight)
      return flight
    },
  }
}

const unreachable = (cause: unknown): OAuthError =>
  new OAuthError('invalid_client', 'the client metadata document cannot be fetched', { cause })

const refused = (description: string): OAuthError => new OAuthError('invalid_client', description)

function readDocument(id: string, response: OutboundResponse, known: Known): Client {
  if (response.status !== 200) throw refused('the client metadata document cannot be fetched')
  if (response.body.length > DOCUMENT_BYTES) throw refused('the client metadata document is too large')
  const type = (response.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== 'application/json' && !/^application\/[^\s;]+\+json$/.test(type))
    throw refused('the client metadata document is not JSON')
  const document: Claims | undefined = readJsonObject(response.body)
  if (document === undefined) throw refused('the client metadata document is not a JSON object')
  if (document.client_id !== id) throw refused('client_id of the client metadata document is not its URL')
  if (document.client_secret !== undefined || document.client_secret_expires_at !== undefined)
    throw refused('the client metadata document has a secret')
  const metadata = readClientMetadata(document, { from: 'document', ...known })
  return { ...metadata, id, kind: 'document', secretHash: undefined, issuedAt: 0 }
}

/** How long a document may be used without another look (RFC 9111 §4.2.1), within our bounds. */
function freshMs(headers: OutboundResponse['headers'], nowMs: number): number {
  const maxAge = /(?:^|,)\s*max-age\s*=\s*"?(\d{1,10})/i.exec(headers['cache-control'] ?? '')?.[1]
  const told = maxAge === undefined ? Date.parse(headers.expires ?? '') - nowMs : Number(maxAge) * 1_000
  return Number.isFinite(told) ? Math.min(MOST_CACHED_MS, Math.max(LEAST_CACHED_MS, told)) : LEAST_CACHED_MS
}
