import { createHash, webcrypto } from 'node:crypto'
import { constants } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

const MAX_FILES = 5_000
const MAX_DEPTH = 8
/** Larger files count by size and time; hashing them in every scan is too expensive. */
const MAX_HASHED_BYTES = 16 * 1024 * 1024
/** Bytes read and hashed per step, on other threads. */
const CHUNK_BYTES = 1024 * 1024
/** A file changed this soon before a scan may change again with the same time. */
const SETTLED_MS = 2_000

/** State of files at one scan. */
export interface Fingerprint {
  readonly digest: string
  /** The scanned directories. */
  readonly directories: readonly string[]
  /** State of each file, so that the next scan reads only changed ones. */
  readonly files: ReadonlyMap<string, KnownFile>
}

interface KnownFile {
  /** Device, inode, size and times. */
  readonly identity: string
  readonly content: string
}

type Stat = NonNullable<Awaited<ReturnType<typeof statOf>>>

const statOf = (path: string) => stat(path, { bigint: true }).catch(() => undefined)

/**
 * SHA-256 over names and contents below a directory (follows links, skips `..*`, 8 levels, 5,000 files). Reads and
 * hashes on other threads, only files that may have changed. Never rejects: unreadable files are part of the state.
 * With `onlyFiles`, only files of the directory itself with accepted names.
 */
export async function fingerprintDirectory(
  directory: string,
  before?: Fingerprint,
  onlyFiles?: (name: string) => boolean,
): Promise<Fingerprint> {
  const hash = createHash('sha256')
  const directories: string[] = []
  const files = new Map<string, KnownFile>()

  const addDirectory = async (path: string, depth: number): Promise<void> => {
    let names: string[]
    try {
      names = (await readdir(path)).toSorted()
    } catch {
      hash.update('missing')
      return
    }
    directories.push(path)
    for (const name of names) {
      // Kubernetes keeps versions behind `..data`; the links in the directory itself count.
      if (name.startsWith('..') || files.size >= MAX_FILES || onlyFiles?.(name) === false) continue
      const inside = join(path, name)
      const found = await statOf(inside)
      if (found === undefined) continue
      hash.update(`${name.length}:${name}`)
      if (found.isDirectory()) {
        if (depth < MAX_DEPTH && onlyFiles === undefined) await addDirectory(inside, depth + 1)
      } else if (found.isFile()) {
        const known = await knownFile(inside, found, before?.files.get(inside))
        files.set(inside, known)
        hash.update(known.content)
      }
      hash.update(';')
    }
  }

  await addDirectory(directory, 0)
  return { digest: hash.digest('base64url'), directories, files }
}

/** The same for one file of any size. */
export async function fingerprintFile(path: string, before?: Fingerprint): Promise<Fingerprint> {
  const found = await statOf(path)
  if (found === undefined || !found.isFile())
    return { digest: found === undefined ? 'missing' : 'not a file', directories: [], files: new Map() }
  const known = await knownFile(path, found, before?.files.get(path), Number.MAX_SAFE_INTEGER)
  return { digest: known.content, directories: [], files: new Map([[path, known]]) }
}

async function knownFile(
  path: string,
  { dev, ino, size, mtimeNs, ctimeNs, mtimeMs, ctimeMs }: Stat,
  before: KnownFile | undefined,
  maxBytes = MAX_HASHED_BYTES,
): Promise<KnownFile> {
  const isSettled = Date.now() - Number(mtimeMs > ctimeMs ? mtimeMs : ctimeMs) > SETTLED_MS
  const identity = `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
  if (before?.identity === identity) return before
  const content = size > maxBytes ? `large ${size} ${mtimeNs}` : `${size}:${await digestOf(path)}`
  // Without an identity, the next scan reads it again.
  return { identity: isSettled ? identity : '', content }
}

/** Digest of the digests of its pieces, on the thread pool; 'unreadable' on error. */
async function digestOf(path: string): Promise<string> {
  try {
    await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const all = createHash('sha256')
    const chunk = new Uint8Array(CHUNK_BYTES)
    for (;;) {
      const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, null)
      if (bytesRead === 0) return all.digest('base64url')
      all.update(new Uint8Array(await webcrypto.subtle.digest('SHA-256', chunk.subarray(0, bytesRead))))
    }
  } catch {
    return 'unreadable'
  }
}
