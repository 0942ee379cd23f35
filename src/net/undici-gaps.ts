import diagnostics from 'node:diagnostics_channel'
import type { ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { errors } from './undici.ts'

// Corrects undici 8.12 from outside (docs/adr/0031, 0372): an aborted response must not look complete, a complete one
// must not fail, and an unsolicited interim response is not an error.

/** A 1xx without meaning, which handlers skip (RFC 9110 §15.2), instead of 100. */
const MEANINGLESS_INTERIM = 199

const watched = new WeakSet<Socket>()
let isWatchingStreams = false
let isWatchingConnections = false

/**
 * Patches a connection for undici. A reset then never completes a response without a length (RFC 9112 §8), and `100
 * Continue` is skipped.
 */
export function correctConnection(socket: Socket): void {
  watched.add(socket)
  // undici treats ECONNRESET, by this name only, as the end. Its listener runs later.
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = 'ECONNABORTED'
  })
  if (isWatchingConnections) return
  isWatchingConnections = true
  diagnostics.subscribe('undici:client:connected', onConnected)
}

/**
 * Patches HTTP/2: a stream that is reset before its end fails with any error code; one that is reset after its end
 * does not (RFC 9113 §8.1).
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
    // END_STREAM arrives while the stream is open. A reset closes it first, and Node hides it for the codes NO_ERROR
    // and CANCEL.
    isEnded = !stream.closed
    if (isEnded) return push(null)
    // Node is still using the stream here.
    process.nextTick(() => stream.destroy(new errors.InformationalError('HTTP/2: stream reset before its end')))
    return false
  }
  const emit = stream.emit.bind(stream)
  stream.emit = (event: string | symbol, ...args: unknown[]) =>
    // A server may respond without reading the request (RFC 9113 §8.1). The pipe of its body would treat that as an
    // abort and lose unread response data.
    event === 'aborted' && isEnded ? false : emit(event, ...args)
  // undici may have released the stream.
  stream.on('error', () => undefined)
}

interface Parser {
  onHeadersComplete: (this: Parser, status: number, upgrade: boolean, shouldKeepAlive: boolean) => number
}

function onConnected(message: unknown): void {
  const { socket } = message as { socket: Socket }
  const parser = watched.has(socket) ? parserOf(socket) : undefined
  if (parser === undefined) return
  diagnostics.unsubscribe('undici:client:connected', onConnected)
  const prototype = Object.getPrototypeOf(parser) as Parser
  const { onHeadersComplete } = prototype
  prototype.onHeadersComplete = function (status, upgrade, shouldKeepAlive) {
    return onHeadersComplete.call(this, status === 100 ? MEANINGLESS_INTERIM : status, upgrade, shouldKeepAlive)
  }
}

/** undici's HTTP/1.1 parser of a connection; undefined for HTTP/2. */
function parserOf(socket: Socket): Parser | undefined {
  const name = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
  const found: unknown = name === undefined ? undefined : Reflect.get(socket, name)
  return typeof found === 'object' && found !== null && 'onHeadersComplete' in found ? (found as Parser) : undefined
}
