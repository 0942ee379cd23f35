import { createServer, type Socket } from 'node:net'
import type { Log } from '../core/index.ts'
import { bind, limitConnections, type ListenAddress } from '../listen/index.ts'

/** Connections waiting for a worker or in transit. */
const MAX_WAITING = 4096
/** Time for a connection to wait for a worker, in milliseconds. Clients give up earlier. */
const MAX_WAIT_MS = 60_000
const LOOK_MS = 1_000

/** A worker as a receiver of connections. */
export interface WorkerSlot {
  /** Offers a connection; the worker owns it if `onAnswer` gets true. Not called if the worker exits first. */
  offer(socket: Socket, onAnswer: (isTaken: boolean) => void): void
}

/** The listener of a proxy with several workers: it accepts connections and dispatches them. */
export interface ConnectionDispatcher {
  /** `http://host:port` with the real port, or `unix:/path`. */
  readonly url: string
  /** Adds a worker to the round-robin dispatch. */
  join(slot: WorkerSlot): void
  /** Removes an exited worker; its pending connections go to others. */
  leave(slot: WorkerSlot): void
  /** Stops accepting; closes waiting connections. */
  close(): void
}

/**
 * Opens the listener. Without a worker, up to 4,096 connections wait unread for a minute. Throws `config_error` if the
 * address cannot be bound.
 */
export async function openDispatcher(
  address: ListenAddress,
  { scheme, log }: { readonly scheme: 'http' | 'https'; readonly log: Log },
): Promise<ConnectionDispatcher> {
  const waiting: Socket[] = []
  const free = new Set<WorkerSlot>()
  /** At most one per worker: a busy worker gets no second one. */
  const offered = new Map<WorkerSlot, Socket>()
  let isClosed = false

  const dispatch = (): void => {
    for (const slot of free) {
      let socket = waiting.shift()
      // It timed out.
      while (socket?.destroyed === true) socket = waiting.shift()
      if (socket === undefined) return
      free.delete(slot)
      offer(slot, socket)
    }
  }
  const offer = (slot: WorkerSlot, socket: Socket): void => {
    offered.set(slot, socket)
    slot.offer(socket, (isTaken) => {
      if (offered.get(slot) !== socket) return
      offered.delete(slot)
      if (isTaken) {
        // The worker has its own descriptor.
        socket.destroy()
        free.add(slot)
      } else {
        // The worker is stopping and gets no more connections.
        waitAgain(socket)
      }
      dispatch()
    })
  }
  const waitAgain = (socket: Socket): void => {
    if (isClosed) socket.destroy()
    else waiting.unshift(socket)
  }

  const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
    // Not read here: data and end of the connection are for the worker.
    socket.on('error', () => socket.destroy()).setTimeout(MAX_WAIT_MS, () => socket.destroy())
    waiting.push(socket)
    dispatch()
  })
  const url = await bind(server, address, { scheme })
  const limit = limitConnections(server, {
    wanted: MAX_WAITING,
    perConnection: 1,
    log,
    onRefused: () => undefined,
  })
  const timer = setInterval(() => limit.look(waiting.length + offered.size), LOOK_MS)
  timer.unref()

  return {
    url,
    join(slot) {
      free.add(slot)
      dispatch()
    },
    leave(slot) {
      free.delete(slot)
      const socket = offered.get(slot)
      offered.delete(slot)
      if (socket !== undefined) waitAgain(socket)
      dispatch()
    },
    close() {
      isClosed = true
      clearInterval(timer)
      server.close()
      for (const socket of waiting.splice(0)) socket.destroy()
    },
  }
}
