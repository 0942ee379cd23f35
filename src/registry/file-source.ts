import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { FileError, readBoundedAsync } from '../files/index.ts'
import { type Bounds, checkEntries } from './bounds.ts'
import { validateItems } from './parse.ts'
import { readDocument } from './read-document.ts'
import type { ReadAll } from './registry-data.ts'
import { buildSnapshot, joinSkipped, type Listed, NOTHING_SKIPPED, type Reading } from './listing/snapshot.ts'
import { SourceError } from './source-error.ts'

const MIB = 1024 * 1024
const MAX_FILES = 5_000
const MAX_DEPTH = 8

const PROBLEMS = {
  missing: 'missing',
  unreadable: 'unreadable',
  not_a_file: 'unreadable',
  outside: 'unreadable',
  too_large: 'too_large',
} as const

async function read(path: string, maxBytes: number): Promise<Buffer> {
  try {
    return await readBoundedAsync(path, maxBytes)
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    const problem = PROBLEMS[error.problem]
    const detail = problem === 'too_large' ? `${path}: ${await tooLarge(path, maxBytes)}` : path
    throw new SourceError(problem, detail, error.cause)
  }
}

const inMiB = (bytes: number): string => `${Math.ceil((bytes * 10) / MIB) / 10} MiB`

async function tooLarge(path: string, maxBytes: number): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  return `${found === undefined ? '' : `${inMiB(found.size)}, `}the limit is ${inMiB(maxBytes)}; it grows with source.maxEntries`
}

async function modifiedMs(path: string): Promise<number> {
  try {
    return Math.trunc((await stat(path)).mtimeMs)
  } catch (error) {
    throw new SourceError('missing', path, error)
  }
}

async function readEntries(bytes: Buffer, path: string, bounds: Bounds): Promise<Reading> {
  const { items, updatedMs } = await readDocument(bytes)
  checkEntries(items.length, bounds, path, true)
  return validateItems(items, path, updatedMs ?? (await modifiedMs(path)))
}

/** Reads the entries of one JSON file. Entries without a date get that of the file. */
export const readFileSource =
  (path: string, bounds: Bounds): ReadAll =>
  async () =>
    buildSnapshot(await readEntries(await read(path, bounds.fileBytes), path, bounds))

/** Sorted paths of the `.json` files below a directory. Skips names that start with a dot (`..data`, `.git`). */
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
    // Follows links: Kubernetes mounts files as links.
    const kind = await stat(path).catch(() => undefined)
    if (kind?.isDirectory() === true && depth < MAX_DEPTH) found.push(...(await jsonFiles(path, depth + 1)))
    else if (kind?.isFile() === true && name.endsWith('.json')) found.push(path)
    if (found.length > MAX_FILES) throw new SourceError('too_large', `more than ${MAX_FILES} files in ${directory}`)
  }
  return found
}

/**
 * Reads the entries of all `.json` files below a directory (8 levels, 5,000 files). An unusable file keeps its former
 * entries and counts as skipped, so that a typo removes nothing. Throws `SourceError` if no file is usable.
 */
export function readDirectorySource(directory: string, bounds: Bounds): ReadAll {
  let before: ReadonlyMap<string, readonly Listed[]> = new Map()
  return async () => {
    const listed: Listed[] = []
    let skipped = NOTHING_SKIPPED
    let broken: SourceError | undefined
    let bytesLeft = bounds.directoryBytes
    const good = new Map<string, readonly Listed[]>()
    for (const path of await jsonFiles(directory)) {
      try {
        const bytes = await read(path, bounds.fileBytes)
        bytesLeft -= bytes.length
        if (bytesLeft < 0) break
        const reading = await readEntries(bytes, path, bounds)
        good.set(path, reading.listed)
        skipped = joinSkipped(skipped, reading.skipped)
      } catch (error) {
        if (!(error instanceof SourceError)) throw error
        broken = error
        good.set(path, before.get(path) ?? [])
        skipped = joinSkipped(skipped, { count: 1, amended: 0, first: [`${path}: ${error.detail}`] })
      }
      for (const entry of good.get(path) ?? []) listed.push(entry)
      checkEntries(listed.length, bounds, directory, false)
    }
    if (bytesLeft < 0)
      throw new SourceError('too_large', `${directory}: more than ${inMiB(bounds.directoryBytes)} in all`)
    if (listed.length === 0 && broken !== undefined) throw broken
    before = good
    return buildSnapshot({ listed, skipped })
  }
}
