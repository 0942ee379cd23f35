import { type IncomingMessage, type Server, type ServerOptions, type ServerResponse, createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { Failure } from '../core/index.ts'
import type { Connection } from './connection.ts'
import { secureContext, type TlsMaterial } from './tls.ts'
import { responseToUpgrade } from './upgrade-response.ts'

const PLAIN = { expectsContinue: false, isUpgrade: false }
const HESITANT = { expectsContinue: true, isUpgrade: false }
const UPGRADING = { expectsContinue: false, isUpgrade: true }

/** Node's server, set so that whatever it would do by itself is asked of the connection that it is about. */
export function createHttpServer<T>(options: {
  readonly tls: TlsMaterial | undefined
  readonly headerLimitBytes: number
  readonly deadlines: { readonly headersMs: number; readonly requestMs: number; readonly keepAliveMs: number }
  readonly servesUpgrade: (upgrade: string | undefined) => boolean
  readonly connectionOf: (socket: Duplex) => Connection<T>
}): Server {
  const { tls, deadlines, servesUpgrade, connectionOf } = options
  const settings: ServerOptions = {
    maxHeaderSize: options.headerLimitBytes,
    headersTimeout: deadlines.headersMs,
    requestTimeout: deadlines.requestMs,
    keepAliveTimeout: deadlines.keepAliveMs,
    connectionsCheckingInterval: Math.min(1000, deadlines.headersMs),
    // Whoever serves says the same with a body and a log line.
    requireHostHeader: false,
    insecureHTTPParser: false,
    shouldUpgradeCallback: (request) => {
      const isServed = servesUpgrade(request.headers.upgrade)
      if (!isServed) connectionOf(request.socket).endAfter(request)
      return isServed
    },
  }
  const server =
    tls === undefined
      ? createServer(settings)
      : createTlsServer({ ...settings, ...secureContext(tls), handshakeTimeout: deadlines.headersMs })
  // The size is bounded above; a bound on the number would silently leave out what comes after.
  server.maxHeadersCount = 0
  // What was asked is answered although nothing more will come; for how long is said in `watchHalfClosed`.
  Object.assign(server, { httpAllowHalfOpen: true })

  server.on('request', (request, response) => connectionOf(request.socket).take(request, response, PLAIN))
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
    connectionOf(request.socket).take(request, response, HESITANT),
  )
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    connectionOf(request.socket).take(request, response, PLAIN),
  )
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    watchErrors(socket)
    const connection = connectionOf(socket)
    // Sent before the answer to another request was out: whatever came now would land in the middle of that.
    if (connection.isBusy) connection.cut('upgrade')
    else connection.take(request, responseToUpgrade(request, head), UPGRADING)
  })
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    watchErrors(socket)
    const connection = connectionOf(socket)
    if (connection.isBusy) connection.cut('upgrade')
    else connection.refuse(new Failure('method_not_allowed'))
  })
  server.on('clientError', (error: Error, socket: Duplex) => connectionOf(socket).onParserError(error))
  return server
}

/** Node lets go of the connection of an upgrade or CONNECT, and of its errors; one that nobody hears ends the process. */
function watchErrors(socket: Duplex): void {
  socket.on('error', () => socket.destroy())
}
