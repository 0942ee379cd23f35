import type { Log } from '../core/index.ts'
import { openWatchedFile, type WatchedFile } from '../files/index.ts'

const MAX_CA_BYTES = 1024 * 1024

/** CA files that configs name, each opened once and kept current. */
export interface CaFiles {
  /** The content of a file now; undefined while it has never been readable, and then nothing is sent. */
  certificate(path: string): () => Buffer | undefined
  close(): void
}

/** Opens CA files as they are asked for. */
export function openCaFiles(log: Log): CaFiles {
  const files = new Map<string, WatchedFile>()
  const open = (path: string): WatchedFile => {
    const file = openWatchedFile(path, {
      maxBytes: MAX_CA_BYTES,
      onProblem: (reason) => log.warn({ file: path, reason }, 'a CA file cannot be read'),
    })
    files.set(path, file)
    return file
  }
  return {
    certificate: (path) => {
      const file = files.get(path) ?? open(path)
      return () => file.read()
    },
    close: () => {
      for (const file of files.values()) file.close()
      files.clear()
    },
  }
}
