import diagnostics from 'node:diagnostics_channel'
import type { ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { errors } from './undici.ts'

// What undici 8.12 gets wrong about answers, put right from outside (docs/adr/0031, 0372): an answer that was cut off must not
// look whole, one that is whole must not be cut off, and an interim answer that nobody asked for is no error.

/** What a 100 is to our handlers: a 1xx without a meaning, which is passed over (RFC 9110 §15.2). */
const MEANINGLESS_INTERIM = 199

const ours = new WeakSet<Socket>()
let isWatchingStreams = false
let isWatchingConnections = false

/**
 * Takes a connection that undici is about to get. A reset is then never the end of an answer without a length (RFC 9112
 * §8: such an answer is complete unless the connection had an error), and `100 Continue` is passed over.
 */
export function correctConnection(socket: Socket): void {
  ours.add(socket)
  // undici takes ECONNRESET, by this name only, for the end. It listens after us.
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = 'ECONNABORTED'
  })
  if (isWatchingConnections) return
  isWatchingConnections = true
  diagnostics.subscribe('undici:client:connected', onConnected)
}

/**
 * From now on an HTTP/2 stream that is reset before its end fails, whatever the error code says, and none fails that is reset
 * behind it (RFC 9113 §8.1).
 */
export function correctStreams(): void {
  if (isWatchingStreams) return
  isWatchingStreams = true
  diagnostics.subscribe('http2.client.stream.created', onStream)
}

function onStream(message: unknown): void {
  const { stream } = message as { stream: ClientHttp2Stream }
  const push = stream.push.bind(stream)
  let isEnded = false
  stream.push = (chunk, encoding) => {
    if (chunk !== null || isEnded) return push(chunk, encoding)
    // END_STREAM comes while the stream is open; a reset closes it first, and Node ends it as if nothing had happened
    // where the code is NO_ERROR or CANCEL.
    isEnded = !stream.closed
    if (isEnded) return push(null)
    // Node is still at work on the stream here.
    process.nextTick(() => stream.destroy(new errors.InformationalError('HTTP/2: stream reset before its end')))
    return false
  }
  const emit = stream.emit.bind(stream)
  stream.emit = (event: string | symbol, ...args: unknown[]) =>
    // Whoever has answered may do without the rest of the request (RFC 9113 §8.1). The pipe of its body would take that for a
    // torn stream, and what nobody has read of the answer yet would be lost.
    event === 'aborted' && isEnded ? false : emit(event, ...args)
  // undici may have let go of the stream by then.
  stream.on('error', () => undefined)
}

interface Parser {
  onHeadersComplete: (this: Parser, status: number, upgrade: boolean, shouldKeepAlive: boolean) => number
}

function onConnected(message: unknown): void {
  const { socket } = message as { socket: Socket }
  const parser = ours.has(socket) ? parserOf(socket) : undefined
  if (parser === undefined) return
  diagnostics.unsubscribe('undici:client:connected', onConnected)
  const prototype = Object.getPrototypeOf(parser) as Parser
  const { onHeadersComplete } = prototype
  prototype.onHeadersComplete = function (status, upgrade, shouldKeepAlive) {
    return onHeadersComplete.call(this, status === 100 ? MEANINGLESS_INTERIM : status, upgrade, shouldKeepAlive)
  }
}

/** undici's HTTP/1.1 parser of a connection; undefined on HTTP/2. */
function parserOf(socket: Socket): Parser | undefined {
  const name = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
  const found: unknown = name === undefined ? undefined : Reflect.get(socket, name)
  return typeof found === 'object' && found !== null && 'onHeadersComplete' in found ? (found as Parser) : undefined
}
