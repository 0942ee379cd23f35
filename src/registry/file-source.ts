import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { FileError, readBoundedAsync } from '../files/index.ts'
import { MAX_ENTRIES, validateItems } from './parse.ts'
import { readDocument } from './read-document.ts'
import type { ReadAll } from './registry-data.ts'
import { buildSnapshot, joinSkipped, type Listed, NOTHING_SKIPPED, type Reading } from './snapshot.ts'
import { SourceError } from './source-error.ts'

/** One file: 10,000 entries of a large registry are about 20 MiB. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024
/** All files of a directory together. */
const MAX_DIRECTORY_BYTES = 128 * 1024 * 1024
const MAX_FILES = 5_000
const MAX_DEPTH = 8

const PROBLEMS = {
  missing: 'missing',
  unreadable: 'unreadable',
  not_a_file: 'unreadable',
  outside: 'unreadable',
  too_large: 'too_large',
} as const

async function read(path: string): Promise<Buffer> {
  try {
    return await readBoundedAsync(path, MAX_FILE_BYTES)
  } catch (error) {
    if (error instanceof FileError) throw new SourceError(PROBLEMS[error.problem], path, error.cause)
    throw error
  }
}

async function modifiedMs(path: string): Promise<number> {
  try {
    return Math.trunc((await stat(path)).mtimeMs)
  } catch (error) {
    throw new SourceError('missing', path, error)
  }
}

async function readEntries(bytes: Buffer, path: string): Promise<Reading> {
  const { items, updatedMs } = await readDocument(bytes)
  return validateItems(items, path, updatedMs ?? (await modifiedMs(path)))
}

/** Reads the entries of one JSON file of at most 64 MiB. Entries without a date get the file's. */
export const readFileSource =
  (path: string): ReadAll =>
  async () =>
    buildSnapshot(await readEntries(await read(path), path))

/** Paths of the `.json` files below a directory, sorted. Names that begin with a dot are skipped (`..data`, `.git`). */
async function jsonFiles(directory: string, depth = 0): Promise<string[]> {
  let items
  try {
    items = await readdir(directory)
  } catch (error) {
    throw new SourceError('missing', directory, error)
  }
  const found: string[] = []
  for (const name of items.toSorted()) {
    if (name.startsWith('.')) continue
    const path = join(directory, name)
    // Followed links: Kubernetes mounts files as links.
    const kind = await stat(path).catch(() => undefined)
    if (kind?.isDirectory() === true && depth < MAX_DEPTH) found.push(...(await jsonFiles(path, depth + 1)))
    else if (kind?.isFile() === true && name.endsWith('.json')) found.push(path)
    if (found.length > MAX_FILES) throw new SourceError('too_large', `more than ${MAX_FILES} files in ${directory}`)
  }
  return found
}

/**
 * Reads the entries of all `.json` files below a directory (8 levels, 5,000 files, 128 MiB together). A file that can't
 * be used gives the entries that it gave before, and counts as skipped, so that nothing vanishes because of a typo
 * elsewhere. Throws `SourceError` when no file can be used.
 */
export function readDirectorySource(directory: string): ReadAll {
  let before: ReadonlyMap<string, readonly Listed[]> = new Map()
  return async () => {
    const listed: Listed[] = []
    let skipped = NOTHING_SKIPPED
    let broken: SourceError | undefined
    let bytesLeft = MAX_DIRECTORY_BYTES
    const good = new Map<string, readonly Listed[]>()
    for (const path of await jsonFiles(directory)) {
      try {
        const bytes = await read(path)
        bytesLeft -= bytes.length
        if (bytesLeft < 0) break
        const reading = await readEntries(bytes, path)
        good.set(path, reading.listed)
        skipped = joinSkipped(skipped, reading.skipped)
      } catch (error) {
        if (!(error instanceof SourceError)) throw error
        broken = error
        good.set(path, before.get(path) ?? [])
        skipped = joinSkipped(skipped, { count: 1, first: [`${path}: ${error.detail}`] })
      }
      for (const entry of good.get(path) ?? []) listed.push(entry)
      if (listed.length > MAX_ENTRIES)
        throw new SourceError('too_large', `${directory}: more than ${MAX_ENTRIES} entries`)
    }
    if (bytesLeft < 0) throw new SourceError('too_large', `${directory}: more than 128 MiB`)
    if (listed.length === 0 && broken !== undefined) throw broken
    before = good
    return buildSnapshot({ listed, skipped })
  }
}
