import { OutboundError, type Clock, type Outbound, type OutboundResponse } from '../core/index.ts'
import { busyFailure, outboundFailure, type ServiceFailures } from '../net/index.ts'
import { type Bounds, checkEntries } from './bounds.ts'
import { validateItems } from './parse.ts'
import { readDocument } from './read-document.ts'
import type { ReadAll } from './registry-data.ts'
import { buildSnapshot, joinSkipped, type Listed, NOTHING_SKIPPED, type Reading } from './listing/snapshot.ts'
import { SourceError } from './source-error.ts'

/** Maximum response of an upstream: a page of the API, or a whole file. */
export const MAX_PAGE_BYTES = 64 * 1024 * 1024

const UPSTREAM: ServiceFailures = {
  what: 'upstream',
  unavailable: 'registry_unavailable',
  unusable: 'registry_unavailable',
}

interface Page {
  readonly etag: string | undefined
  readonly reading: Reading
  readonly nextCursor: string | undefined
}

/** The requested URL: an origin alone means the list of the published API. */
export function listUrl(configured: string): string {
  const url = new URL(configured)
  if (url.pathname === '/' && url.search === '') url.pathname = '/v0.1/servers'
  if (/\/v0(?:\.1)?\/servers$/.test(url.pathname) && !url.searchParams.has('limit'))
    url.searchParams.set('limit', '100')
  return url.href
}

function pageUrl(first: string, cursor: string | undefined): string {
  if (cursor === undefined) return first
  const url = new URL(first)
  url.searchParams.set('cursor', cursor)
  return url.href
}

async function ask(outbound: Outbound, url: string, etag: string | undefined): Promise<OutboundResponse> {
  const headers = { accept: 'application/json', ...(etag === undefined ? {} : { 'if-none-match': etag }) }
  try {
    return await outbound.request({ method: 'GET', url, headers })
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    const { detail = '', retryAfterSeconds } = outboundFailure(error, UPSTREAM)
    throw new SourceError(error.kind === 'too_large' ? 'too_large' : 'unreachable', detail, error, retryAfterSeconds)
  }
}

function badStatus(response: OutboundResponse, clock: Clock): SourceError {
  const wait = busyFailure(response, UPSTREAM, clock.now())?.retryAfterSeconds
  return new SourceError('bad_status', `the upstream returned ${response.status}`, undefined, wait)
}

/** Time of the response, for entries without a date. */
function lastModifiedMs(response: OutboundResponse, clock: Clock): number {
  const modified = Date.parse(response.headers['last-modified'] ?? '')
  return Number.isNaN(modified) ? clock.now() : modified
}

/**
 * Reads all pages of an upstream registry, or one JSON document at a URL. Sends the former ETag of each page, so that
 * polling unchanged data transfers none (RFC 9110 §13.1.2). Follows no redirects. Throws `SourceError`.
 */
export function readUpstreamSource(configured: string, outbound: Outbound, clock: Clock, bounds: Bounds): ReadAll {
  const first = listUrl(configured)
  let pages: ReadonlyMap<string, Page> = new Map()

  return async () => {
    const seen = new Map<string, Page>()
    const listed: Listed[] = []
    let skipped = NOTHING_SKIPPED
    let isUnchanged = pages.size > 0
    let cursor: string | undefined
    do {
      const url = pageUrl(first, cursor)
      if (seen.has(url)) throw new SourceError('invalid', 'the upstream returned the same cursor twice')
      if (seen.size === bounds.pages)
        throw new SourceError('too_large', `the upstream has more than ${bounds.pages} pages`)
      const before = pages.get(url)
      const response = await ask(outbound, url, before?.etag)
      let page: Page
      if (response.status === 304 && before?.etag !== undefined) {
        page = before
      } else {
        isUnchanged = false
        if (response.status !== 200) throw badStatus(response, clock)
        const { items, nextCursor, updatedMs } = await readDocument(response.body)
        checkEntries(listed.length + items.length, bounds, 'the upstream', nextCursor === undefined)
        const reading = await validateItems(
          items,
          `page ${seen.size + 1}`,
          updatedMs ?? lastModifiedMs(response, clock),
        )
        page = { etag: response.headers['etag'], reading, nextCursor }
      }
      seen.set(url, page)
      checkEntries(listed.length + page.reading.listed.length, bounds, 'the upstream', page.nextCursor === undefined)
      for (const entry of page.reading.listed) listed.push(entry)
      skipped = joinSkipped(skipped, page.reading.skipped)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    if (isUnchanged) return 'unchanged'
    const snapshot = await buildSnapshot({ listed, skipped })
    // Only pages of a complete snapshot count as known at the next poll.
    pages = seen
    return snapshot
  }
}
