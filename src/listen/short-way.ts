import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { ServedConnection, type ServedDeadlines } from '../wire/index.ts'
import type { Connection } from './connection.ts'

/** Node waits so much longer than it promises in `Keep-Alive`, in milliseconds; who uses the promise to its end is not cut off. */
const KEEP_ALIVE_SPARE_MS = 1000
const PLAIN = { expectsContinue: false, isUpgrade: false }

/** The connections of a listener whose requests it reads itself. */
export interface ShortWay {
  /** To be called about each second: ends those whose clients take too long. */
  look(): void
  /** Ends those that have nothing to do. */
  closeIdle(): void
}

/**
 * Takes each new connection of a server before Node's parser does. Requests that are plain HTTP/1.1 are read and answered by
 * `wire`; with the first that is anything else, the socket and all that was not read of it are Node's, for good: whatever it
 * refuses, upgrades or reads in its own way is as if it had read from the beginning.
 */
export function openShortWay<T>(
  server: Server,
  options: {
    readonly isSecure: boolean
    readonly headerLimitBytes: number
    readonly deadlines: ServedDeadlines
    readonly connectionOf: (socket: Socket) => Connection<T>
  },
): ShortWay {
  const { isSecure, deadlines, headerLimitBytes, connectionOf } = options
  const { keepAliveMs } = deadlines
  const event = isSecure ? 'secureConnection' : 'connection'
  const [nodes] = server.listeners(event)
  if (nodes === undefined) throw new Error('no server of HTTP')
  server.off(event, nodes as () => void)
  const open = new Set<ServedConnection>()
  const served = {
    deadlines: { ...deadlines, keepAliveMs: keepAliveMs && keepAliveMs + KEEP_ALIVE_SPARE_MS },
    maxHeadBytes: headerLimitBytes,
    keepAlive: keepAliveMs > 0 ? `timeout=${Math.floor(keepAliveMs / 1000)}` : undefined,
  }
  server.on(event, (socket: Socket) => {
    const connection = connectionOf(socket)
    const one = new ServedConnection(socket, served, {
      get isOver() {
        return connection.isOver
      },
      take: (request, response) => connection.take(request, response, PLAIN),
      onUnreadable: (error) => connection.onParserError(error),
      stall: (isStalled) => (isStalled ? connection.pause() : connection.resume()),
      handOver(bytes, hasEnded) {
        open.delete(one)
        nodes.call(server, socket)
        socket.emit('data', bytes)
        if (hasEnded) socket.emit('end')
      },
    })
    open.add(one)
    socket.once('close', () => open.delete(one))
  })
  return {
    look() {
      const nowMs = performance.now()
      for (const one of open) one.look(nowMs)
    },
    closeIdle() {
      for (const one of open) one.closeIdle()
    },
  }
}
