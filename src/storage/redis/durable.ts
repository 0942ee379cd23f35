import { StoreError } from '../port.ts'
import type { Connection } from './connection.ts'

/** Maximum number of writes per `WAIT`. */
const MOST_IN_A_BATCH = 256
/** `WAIT` returns at its timeout; later than this, the connection is dead. */
const MARGIN_MS = 500

type Write = (connection: Connection) => Promise<unknown>

interface Waiting {
  readonly write: Write
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Waits until replicas have each write. `WAIT` blocks its connection and covers only writes on it, so durable writes
 * have a connection. Writes during a `WAIT` share the next. Throws `StoreError` `too_few_replicas` if written but not
 * durable.
 */
export function createDurableWriter(connection: Connection, replicas: number, readTimeoutMs: number) {
  const queue: Waiting[] = []
  let isBusy = false

  const flush = async () => {
    isBusy = true
    while (queue.length > 0) {
      const batch = queue.splice(0, MOST_IN_A_BATCH)
      const written = await Promise.allSettled(batch.map(({ write }) => write(connection)))
      const isSafe = await settled(connection, replicas, readTimeoutMs)
      for (const [index, { resolve, reject }] of batch.entries()) {
        const result = written[index]
        if (result?.status === 'rejected') reject(result.reason)
        else if (isSafe) resolve(result?.value)
        else reject(new StoreError('too_few_replicas'))
      }
    }
    isBusy = false
  }

  return (write: Write): Promise<unknown> =>
    new Promise((resolve, reject) => {
      queue.push({ write, resolve, reject })
      if (!isBusy) void flush()
    })
}

async function settled(connection: Connection, replicas: number, readTimeoutMs: number): Promise<boolean> {
  try {
    const reached = await connection.call(['wait', replicas, readTimeoutMs], readTimeoutMs + MARGIN_MS)
    return typeof reached === 'number' && reached >= replicas
  } catch {
    return false
  }
}
