import { setImmediate as breathe } from 'node:timers/promises'
import { OFFICIAL_META, type OfficialMeta, type ServerResponse } from './server-json.ts'
import { SourceError } from './source-error.ts'
import { compareVersions } from './version-order.ts'

/** One version of one server, ready to send. */
export interface Entry {
  readonly name: string
  readonly version: string
  /** For `search`. */
  readonly lowerName: string
  readonly updatedAtMs: number
  readonly publishedAtMs: number
  readonly isLatest: boolean
  readonly isDeleted: boolean
  /** `{"server":…,"_meta":…}`, serialised once at load, so that a list is a join of strings. */
  readonly json: string
}

/** All entries of a registry at one moment; never changes, only replaced as a whole. */
export interface Snapshot {
  /** By name, then version, in code-unit order: a total order that paging relies on. */
  readonly entries: readonly Entry[]
  /** Versions of each server, newest first. */
  readonly byName: ReadonlyMap<string, readonly Entry[]>
}

/** A validated entry and the time that counts for it when it says none itself. */
export interface Listed {
  readonly response: ServerResponse
  readonly fallbackMs: number
}

/** Position of an entry in the total order; the same comparison as the sort below. */
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
  readonly publishedAtMs: number
  readonly updatedAtMs: number
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

/** The latest of one server's versions: the one that says so, if it is the only one; else the newest that lives. */
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
    lowerName: dated.name.toLowerCase(),
    updatedAtMs,
    publishedAtMs,
    isLatest,
    isDeleted: dated.isDeleted,
    json: JSON.stringify({ server, _meta: { ..._meta, [OFFICIAL_META]: official } }),
  }
}

/** Servers serialised before other requests get their turn. */
const SLICE = 100

/**
 * Orders, dates and serialises entries, a slice at a time. Every server gets exactly one latest version. Throws
 * `SourceError` when the same version of a server comes twice.
 */
export async function buildSnapshot(listed: readonly Listed[]): Promise<Snapshot> {
  const groups = Map.groupBy(listed.map(date), (dated) => dated.name)
  const entries: Entry[] = []
  const byName = new Map<string, readonly Entry[]>()
  for (const [name, versions] of groups) {
    if (new Set(versions.map(({ version }) => version)).size !== versions.length)
      throw new SourceError('invalid', `a version of ${name} is listed twice`)
    const latest = latestOf(versions)
    const made = versions.toSorted(newestFirst).map((dated) => toEntry(dated, dated === latest))
    byName.set(name, made)
    if (byName.size % SLICE === 0) await breathe()
    entries.push(...made)
  }
  entries.sort(comparePosition)
  return { entries, byName }
}
