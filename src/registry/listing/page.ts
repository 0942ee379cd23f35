import { decodeCursor, encodeCursor } from './cursor.ts'
import { comparePosition, type Entry, type Snapshot } from './snapshot.ts'

export interface ListQuery {
  /** 1 to 100. */
  readonly limit: number
  readonly cursor?: string | undefined
  /** Part of the server's name, title or description, case-insensitive. */
  readonly search?: string | undefined
  /** RFC 3339. */
  readonly updated_since?: string | undefined
  /** `latest` or an exact version. */
  readonly version?: string | undefined
  /** Default false; true with `updated_since`, so that mirrors learn of deletions. */
  readonly include_deleted?: boolean | undefined
}

/** Binary search: the first index of `length` sorted items for which `isBefore` is false. */
function firstIndex(length: number, isBefore: (index: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}

/** Index of the first entry after `position`. */
function indexAfter(entries: readonly Entry[], position: { name: string; version: string }): number {
  return firstIndex(entries.length, (index) => {
    const entry = entries[index]
    return entry !== undefined && comparePosition(entry, position) <= 0
  })
}

/** The filter of a query, computed once per request. */
function matcherOf(query: ListQuery): (entry: Entry) => boolean {
  const search = query.search?.toLowerCase()
  const since = query.updated_since === undefined ? undefined : Date.parse(query.updated_since)
  const { version } = query
  const withDeleted = query.include_deleted === true || since !== undefined
  return (entry) =>
    (withDeleted || !entry.isDeleted) &&
    (search === undefined || entry.searchText.includes(search)) &&
    (since === undefined || entry.updatedAtMs >= since) &&
    (version === undefined || (version === 'latest' ? entry.isLatest : entry.version === version))
}

/** The entries from `from` that may match, in order: those of the index, or all. */
function* candidates(snapshot: Snapshot, search: string | undefined, from: number): Generator<Entry> {
  const { entries } = snapshot
  if (search === undefined || search === '') {
    for (let index = from; index < entries.length; index++) {
      const entry = entries[index]
      if (entry !== undefined) yield entry
    }
    return
  }
  const found = snapshot.searchIndex.candidates(search.toLowerCase())
  for (let at = firstIndex(found.length, (index) => (found[index] ?? 0) < from); at < found.length; at++) {
    const entry = entries[found[at] ?? -1]
    if (entry !== undefined) yield entry
  }
}

const render = (entries: readonly Entry[], nextCursor: string | undefined): string => {
  const metadata = nextCursor === undefined ? { count: entries.length } : { count: entries.length, nextCursor }
  return `{"servers":[${entries.map((entry) => entry.json).join(',')}],"metadata":${JSON.stringify(metadata)}}`
}

/**
 * Renders a page of the list as JSON: `{servers, metadata: {count, nextCursor?}}`, ordered by name and version. Keeps
 * at most `limit` entries. Throws `bad_request` for an invalid cursor.
 */
export function renderPage(snapshot: Snapshot, query: ListQuery): string {
  const isWanted = matcherOf(query)
  const found: Entry[] = []
  const from = query.cursor === undefined ? 0 : indexAfter(snapshot.entries, decodeCursor(query.cursor))
  for (const entry of candidates(snapshot, query.search, from)) {
    if (!isWanted(entry)) continue
    if (found.length === query.limit) {
      const last = found.at(-1)
      return render(found, last === undefined ? undefined : encodeCursor(last))
    }
    found.push(entry)
  }
  return render(found, undefined)
}

/**
 * Renders all versions of a server by date of publication, newest first, like the list; undefined for an unknown
 * server.
 */
export function renderVersions(snapshot: Snapshot, name: string, withDeleted: boolean): string | undefined {
  const versions = snapshot.byName.get(name)?.filter((entry) => withDeleted || !entry.isDeleted) ?? []
  return versions.length === 0 ? undefined : render(versions, undefined)
}

/** Renders one version of a server, or `latest`; undefined if unknown. */
export function renderVersion(
  snapshot: Snapshot,
  name: string,
  version: string,
  withDeleted: boolean,
): string | undefined {
  const entry = snapshot.byName
    .get(name)
    ?.find((entry) => (version === 'latest' ? entry.isLatest : entry.version === version))
  return entry === undefined || (entry.isDeleted && !withDeleted) ? undefined : entry.json
}
