import { createServer, type Socket } from 'node:net'
import type { Log } from '../core/index.ts'
import { bind, limitConnections, type ListenAddress } from '../listen/index.ts'

/** Connections that wait for a worker, or are on their way to one. */
const MOST_WAITING = 4096
/** How long one waits for a worker, in milliseconds; a client has given up by then. */
const LONGEST_WAIT_MS = 60_000
const LOOK_MS = 1_000

/** A worker as somebody who takes connections. */
export interface Taker {
  /** Offers a connection; it is the worker's when `onAnswer` hears so. Not called when the worker ends before. */
  offer(socket: Socket, onAnswer: (isTaken: boolean) => void): void
}

/** The port of a proxy with several workers: it accepts, and hands round what it has accepted. */
export interface Reception {
  /** `http://host:port` with the real port, or `unix:/path`. */
  readonly url: string
  /** `taker` gets connections by turns from now on, one after the other. */
  join(taker: Taker): void
  /** `taker` has ended: what it was offered and did not take goes to another one. */
  leave(taker: Taker): void
  /** No new connections; those that wait are closed. */
  close(): void
}

/**
 * Opens the port. While there is no worker, connections wait, up to a minute and 4,096 of them; nothing is read of them.
 * Throws `config_error` when the address can't be bound.
 */
export async function openReception(
  address: ListenAddress,
  { scheme, log }: { readonly scheme: 'http' | 'https'; readonly log: Log },
): Promise<Reception> {
  const waiting: Socket[] = []
  const free = new Set<Taker>()
  /** At most one each: a worker that is busy takes no second one. */
  const offered = new Map<Taker, Socket>()
  let isClosed = false

  const handRound = (): void => {
    for (const taker of free) {
      let socket = waiting.shift()
      // Its time was over.
      while (socket?.destroyed === true) socket = waiting.shift()
      if (socket === undefined) return
      free.delete(taker)
      offer(taker, socket)
    }
  }
  const offer = (taker: Taker, socket: Socket): void => {
    offered.set(taker, socket)
    taker.offer(socket, (isTaken) => {
      if (offered.get(taker) !== socket) return
      offered.delete(taker)
      if (isTaken) {
        // The worker has its own descriptor of it.
        socket.destroy()
        free.add(taker)
      } else {
        // It is stopping, and gets no other one.
        waitAgain(socket)
      }
      handRound()
    })
  }
  const waitAgain = (socket: Socket): void => {
    if (isClosed) socket.destroy()
    else waiting.unshift(socket)
  }

  const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
    // Nobody reads it here: what the client sends, and its end, are for the worker.
    socket.on('error', () => socket.destroy()).setTimeout(LONGEST_WAIT_MS, () => socket.destroy())
    waiting.push(socket)
    handRound()
  })
  const url = await bind(server, address, { scheme })
  const limit = limitConnections(server, {
    wanted: MOST_WAITING,
    perConnection: 1,
    log,
    onRefused: () => undefined,
  })
  const timer = setInterval(() => limit.look(waiting.length + offered.size), LOOK_MS)
  timer.unref()

  return {
    url,
    join(taker) {
      free.add(taker)
      handRound()
    },
    leave(taker) {
      free.delete(taker)
      const socket = offered.get(taker)
      offered.delete(taker)
      if (socket !== undefined) waitAgain(socket)
      handRound()
    },
    close() {
      isClosed = true
      clearInterval(timer)
      server.close()
      for (const socket of waiting.splice(0)) socket.destroy()
    },
  }
}
