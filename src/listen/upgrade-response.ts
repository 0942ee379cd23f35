import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Most bytes of the other protocol that a client may send before its backend has agreed to it; more ends the connection. */
const EARLY_BYTES = 128 * 1024

/**
 * The answer to an upgrade request on its raw socket. Until it is out, the socket is read: a client that leaves is only
 * seen by reading. What comes is kept for the other protocol, and thrown away when there is none.
 */
class UpgradeResponse extends ServerResponse {
  readonly #early: Buffer[] = []
  #bytes = 0
  #client: Socket | undefined = undefined

  override assignSocket(socket: Socket): void {
    super.assignSocket(socket)
    this.#client = socket
    socket.on('data', this.#keep)
  }

  /** From here on the connection is the other protocol's. */
  override detachSocket(socket: Socket): void {
    super.detachSocket(socket)
    socket.off('data', this.#keep).pause()
    if (this.#bytes > 0) socket.unshift(Buffer.concat(this.#early))
  }

  readonly #keep = (chunk: Buffer): void => {
    if (this.headersSent) return
    this.#early.push(chunk)
    if ((this.#bytes += chunk.length) > EARLY_BYTES) this.#client?.destroy()
  }
}

/**
 * A response on the raw socket of an upgrade request, for the case that there is no upgrade. `head` is what came behind
 * the request. Throws when the answer to a request before it still has the socket.
 */
export function responseToUpgrade(request: IncomingMessage, head: Buffer): ServerResponse {
  const { socket } = request
  const response = new UpgradeResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  if (head.length > 0) socket.unshift(head)
  // A client that leaves before it was answered; once the connection is another protocol's, its ends are that one's.
  socket.once('end', () => {
    if (response.socket !== null) socket.destroy()
  })
  response.once('finish', () => socket.destroySoon())
  return response
}
