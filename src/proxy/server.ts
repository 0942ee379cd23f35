import { createServer, ServerResponse, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { causeOf, Failure, type Log } from '../core/index.ts'
import { createConnections } from './connection.ts'
import type { Handler } from './handler.ts'
import type { Deadlines, TlsMaterial } from './options.ts'
import { parserFailure, refuseConnection } from './refuse-connection.ts'

export interface ServerSettings {
  readonly headerLimitBytes: number
  readonly tls: TlsMaterial | undefined
  readonly deadlines: Deadlines
  readonly log: Log
}

/** Node's server, set so that whatever it does by itself is what the error table says. */
export function createHttpServer(handler: Handler, settings: ServerSettings): Server {
  const { tls } = settings
  const options: ServerOptions = {
    maxHeaderSize: settings.headerLimitBytes,
    headersTimeout: settings.deadlines.headersMs,
    // Counts whole bodies, so it would end long uploads; slow bodies have a watch of their own.
    requestTimeout: 0,
    keepAliveTimeout: settings.deadlines.keepAliveMs,
    connectionsCheckingInterval: Math.min(1000, settings.deadlines.headersMs),
    // Admission says the same with a body and a log line.
    requireHostHeader: false,
    insecureHTTPParser: false,
    // Java's client asks for h2c with its first request; a server may ignore that (RFC 9110 §7.8).
    shouldUpgradeCallback: (request) => request.headers.upgrade?.trim().toLowerCase() !== 'h2c',
  }
  const server = tls === undefined ? createServer(options) : createTlsServer({ ...options, ...secureContext(tls) })
  // The size is bounded above; a bound on the number would silently leave out what comes after.
  server.maxHeadersCount = 0
  // Node tells an answer that its client is gone, but not one that has no connection yet, nor after an upgrade request.
  const connections = createConnections(tls === undefined ? 'http' : 'https', (gone) => handler.abandon(gone))

  const plain = { expectsContinue: false, isUpgrade: false }
  const hesitant = { expectsContinue: true, isUpgrade: false }
  const upgrading = { expectsContinue: false, isUpgrade: true }
  server.on('request', (request, response) => handler.handle(request, response, connections.of(request.socket), plain))
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
    handler.handle(request, response, connections.of(request.socket), hesitant),
  )
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    handler.handle(request, response, connections.of(request.socket), plain),
  )
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    watchErrors(socket)
    const connection = connections.of(socket)
    // Sent before the answer to another request was out: whatever came now would land in the middle of that.
    const response = connection.active.length > 0 ? undefined : responseOn(request, head)
    if (response === undefined) socket.destroy()
    else handler.handle(request, response, connection, upgrading)
  })
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    watchErrors(socket)
    if (connections.of(socket).active.length > 0) socket.destroy()
    else refuseConnection(socket, undefined, new Failure('method_not_allowed'))
  })
  server.on('clientError', (error: Error, socket: Duplex) => {
    // Who leaves has sent nothing wrong; requests that were being answered end as those of a client that is gone.
    if (GONE.has(causeOf(error).code ?? '')) {
      socket.destroy()
      return
    }
    const connection = connections.of(socket)
    const failure = parserFailure(error)
    const exchange = connection.active.length === 0 ? undefined : connection.last
    // What belongs to a request is in that request's line.
    if (exchange === undefined)
      settings.log.info({ status: failure.status, reason: failure.code, cause: causeOf(error) }, 'connection refused')
    // With several answers in progress, whatever is written now would land in the middle of one.
    if (connection.active.length > 1) socket.destroy()
    else refuseConnection(socket, exchange, failure)
  })
  return server
}

/** Codes of a connection that the client has broken off. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

/** Node lets go of the connection of an upgrade or CONNECT, and of its errors; one that nobody hears ends the process. */
function watchErrors(socket: Duplex): void {
  socket.on('error', () => socket.destroy())
}

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
 * A response on the raw socket of an upgrade request, for the case that there is no upgrade; undefined while the answer to
 * a request before it still has the socket.
 */
function responseOn(request: IncomingMessage, head: Buffer): ServerResponse | undefined {
  const { socket } = request
  const response = new UpgradeResponse(request)
  response.shouldKeepAlive = false
  try {
    response.assignSocket(socket)
  } catch {
    return undefined
  }
  if (head.length > 0) socket.unshift(head)
  // A client that leaves before it was answered; once the connection is another protocol's, its ends are that one's.
  socket.once('end', () => {
    if (response.socket !== null) socket.destroy()
  })
  response.once('finish', () => socket.destroySoon())
  return response
}

function secureContext(tls: TlsMaterial) {
  return { ...tls.current(), minVersion: 'TLSv1.2' as const, ALPNProtocols: ['http/1.1'] }
}

/** Replaces the certificate of a TLS server when it changes; a broken one never replaces a working one. */
export function followCertificate(server: Server, tls: TlsMaterial | undefined, log: Log): () => void {
  if (tls === undefined || !(server instanceof TlsServer)) return () => {}
  return tls.onChange(() => {
    try {
      server.setSecureContext(secureContext(tls))
      log.info({}, 'listener certificate replaced')
    } catch (error) {
      log.error({ cause: causeOf(error) }, 'new listener certificate is not usable, the one before stays')
    }
  })
}
