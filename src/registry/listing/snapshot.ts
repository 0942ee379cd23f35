import { createHash } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import type { EpochMs } from '../../core/index.ts'
import { SearchIndex } from './search-index.ts'
import { OFFICIAL_META, type OfficialMeta, type ServerResponse } from '../server-json.ts'
import { sortInSlices } from './sort-in-slices.ts'
import { SourceError } from '../source-error.ts'
import { compareVersions } from './version-order.ts'

/** One version of one server, rendered. */
export interface Entry {
  readonly name: string
  readonly version: string
  /** For `search`: name, title and description in lower case. */
  readonly searchText: string
  readonly updatedAtMs: EpochMs
  readonly publishedAtMs: EpochMs
  readonly isLatest: boolean
  readonly isDeleted: boolean
  /** `{"server":…,"_meta":…}`, serialized at load, so that a list is a join of strings. */
  readonly json: string
}

/** All entries of a registry at one time. Immutable, replaced as a whole. */
export interface Snapshot {
  /** By name, then version, in code-unit order: the total order of paging. */
  readonly entries: readonly Entry[]
  /** Versions of each server by date of publication, newest first. */
  readonly byName: ReadonlyMap<string, readonly Entry[]>
  /** Index of the `searchText` of `entries`. */
  readonly searchIndex: SearchIndex
  /** Hash of the entries, equal in all replicas, for entity tags. */
  readonly revision: string
  readonly skipped: Skipped
}

/** Entries that were skipped as invalid. */
export interface Skipped {
  readonly count: number
  /** Served entries without some invalid optional fields. */
  readonly amended: number
  /** The first problems, with locations. */
  readonly first: readonly string[]
}

export const NOTHING_SKIPPED: Skipped = { count: 0, amended: 0, first: [] }
const MAX_TOLD = 5

/** Merges two results. */
export const joinSkipped = (a: Skipped, b: Skipped): Skipped => ({
  count: a.count + b.count,
  amended: a.amended + b.amended,
  first: a.first.length === MAX_TOLD ? a.first : [...a.first, ...b.first].slice(0, MAX_TOLD),
})

/** Content of a file or page: the valid entries, and what was skipped. */
export interface Reading {
  readonly listed: readonly Listed[]
  readonly skipped: Skipped
}

/** A validated entry with its fallback time. */
export interface Listed {
  readonly response: ServerResponse
  readonly fallbackMs: number
}

/** Compares positions in the total order, like the sort below. */
export function comparePosition(
  a: { readonly name: string; readonly version: string },
  b: { readonly name: string; readonly version: string },
): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1
  if (a.version !== b.version) return a.version < b.version ? -1 : 1
  return 0
}

interface Dated {
  readonly listed: Listed
  readonly name: string
  readonly version: string
  readonly given: OfficialMeta
  readonly publishedAtMs: EpochMs
  readonly updatedAtMs: EpochMs
  readonly isDeleted: boolean
}

function date(listed: Listed): Dated {
  const { server, _meta } = listed.response
  const given = _meta?.[OFFICIAL_META] ?? {}
  const published = given.publishedAt ?? given.updatedAt
  const publishedAtMs = published === undefined ? listed.fallbackMs : Date.parse(published)
  const updatedAtMs = given.updatedAt === undefined ? publishedAtMs : Date.parse(given.updatedAt)
  const isDeleted = given.status === 'deleted'
  return { listed, name: server.name, version: server.version, given, publishedAtMs, updatedAtMs, isDeleted }
}

const newestFirst = (a: Dated, b: Dated): number =>
  compareVersions(b.version, a.version) || b.publishedAtMs - a.publishedAtMs || comparePosition(a, b)

/** The order of the published API. Equal or unknown dates are ordered by version. */
const lastPublishedFirst = (a: Dated, b: Dated): number => b.publishedAtMs - a.publishedAtMs || newestFirst(a, b)

/** The latest version of a server: the only one marked so, else the newest that is not deleted. */
function latestOf(versions: readonly Dated[]): Dated | undefined {
  const marked = versions.filter((version) => version.given.isLatest === true)
  if (marked.length === 1) return marked[0]
  const living = versions.filter((version) => !version.isDeleted)
  return (living.length > 0 ? living : versions).toSorted(newestFirst)[0]
}

function toEntry(dated: Dated, isLatest: boolean): Entry {
  const { listed, given, publishedAtMs, updatedAtMs } = dated
  const official = {
    ...given,
    status: given.status ?? 'active',
    publishedAt: given.publishedAt ?? new Date(publishedAtMs).toISOString(),
    updatedAt: given.updatedAt ?? new Date(updatedAtMs).toISOString(),
    isLatest,
  }
  const { server, _meta } = listed.response
  return {
    name: dated.name,
    version: dated.version,
    searchText: `${server.name}\0${server.title ?? ''}\0${server.description}`.toLowerCase(),
    updatedAtMs,
    publishedAtMs,
    isLatest,
    isDeleted: dated.isDeleted,
    json: JSON.stringify({ server, _meta: { ..._meta, [OFFICIAL_META]: official } }),
  }
}

/** Servers serialized per slice, between other requests. */
const SLICE = 100

/**
 * Orders, dates, serializes and indexes entries in slices. Each server gets exactly one latest version; of duplicate
 * versions, the first counts. Throws `SourceError` if there are entries and none is valid.
 */
export async function buildSnapshot(reading: Reading): Promise<Snapshot> {
  const { byServer, skipped } = await withoutDoubles(reading)
  if (byServer.size === 0 && skipped.count > 0) throw new SourceError('invalid', skipped.first.join('; '))
  const entries: Entry[] = []
  const byName = new Map<string, readonly Entry[]>()
  for (const [name, versions] of byServer) {
    const latest = latestOf(versions)
    const made = versions.toSorted(lastPublishedFirst).map((one) => toEntry(one, one === latest))
    byName.set(name, made)
    if (byName.size % SLICE === 0) await breathe()
    for (const entry of made) entries.push(entry)
  }
  const sorted = await sortInSlices(entries, comparePosition)
  const searchIndex = await SearchIndex.of(sorted.map((entry) => entry.searchText))
  return { entries: sorted, byName, searchIndex, revision: await revisionOf(sorted), skipped }
}

/** The versions of each server without duplicates. */
async function withoutDoubles(
  reading: Reading,
): Promise<{ readonly byServer: ReadonlyMap<string, readonly Dated[]>; readonly skipped: Skipped }> {
  let { skipped } = reading
  const seen = new Set<string>()
  const byServer = new Map<string, Dated[]>()
  for (const [index, listed] of reading.listed.entries()) {
    if (index % SLICE === SLICE - 1) await breathe()
    const one = date(listed)
    // Names and versions contain no NUL.
    const position = `${one.name}\0${one.version}`
    if (seen.has(position)) {
      skipped = joinSkipped(skipped, { count: 1, amended: 0, first: [`${one.name}: a version is listed twice`] })
      continue
    }
    seen.add(position)
    const versions = byServer.get(one.name)
    if (versions === undefined) byServer.set(one.name, [one])
    else versions.push(one)
  }
  return { byServer, skipped }
}

async function revisionOf(entries: readonly Entry[]): Promise<string> {
  const hash = createHash('sha256')
  for (const [index, entry] of entries.entries()) {
    if (index % SLICE === SLICE - 1) await breathe()
    hash.update(entry.json).update('\n')
  }
  return hash.digest('base64url').slice(0, 22)
}
