import { type Log, RefCountedPool } from '../core/index.ts'
import { areCertificates, openWatchedFile, type WatchedFile } from '../files/index.ts'

const MAX_CA_BYTES = 1024 * 1024

/** The CA files that one configuration names. */
export interface HeldCaFiles {
  /** The content of a file now; undefined while it has never been readable, and then nothing is sent. */
  certificate(path: string): () => Buffer | undefined
  release(): void
}

export interface CaFiles {
  hold(): HeldCaFiles
}

/** CA files that configurations name, each opened once, kept current, and closed with the last that names it. */
export function openCaFiles(log: Log): CaFiles {
  const files = new RefCountedPool<WatchedFile>((file) => file.close())
  const open = (path: string): WatchedFile =>
    openWatchedFile(path, {
      maxBytes: MAX_CA_BYTES,
      // Node's TLS takes anything, and would trust nobody then.
      accept: areCertificates,
      onProblem: (reason) => log.warn({ file: path, reason }, 'a CA file cannot be used'),
    })
  return {
    hold() {
      const held = files.hold()
      return {
        certificate: (path) => {
          const file = held.get(path, () => open(path))
          return () => file.read()
        },
        // Closing a watched file waits for nothing.
        release: () => void held.release(),
      }
    },
  }
}
