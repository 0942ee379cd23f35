import { Failure, type Body } from '../core/index.ts'
import type { BodyWatch } from './body-watch.ts'
import type { Exchange } from './exchange.ts'

/** A body of up to this many bytes, announced by Content-Length, is kept so that it can be sent again (decisions §4). */
export const KEPT_BYTES = 1024 * 1024

export interface BodyOptions {
  /** The applier hashes the body, so all of it must be there. */
  readonly mustKeep: boolean
  /** Bytes of a body that must be kept; larger is `body_too_large`. */
  readonly limitBytes: number
  readonly watch: BodyWatch
}

const NONE: Body = Object.freeze({ kind: 'none' })

/**
 * The body of a request: none, kept (small and of known length, or needed whole), or a stream. Asks the client for it
 * first when the client waits to be asked. Rejects with `body_too_large`, and `request_timeout` when a kept body does not
 * arrive in time.
 */
export function takeBody(exchange: Exchange, options: BodyOptions): Body | Promise<Body> {
  const { request } = exchange
  const announced = request.headers['content-length']
  const isChunked = request.headers['transfer-encoding'] !== undefined
  const length = announced === undefined ? undefined : Number(announced)
  // After an upgrade request comes the other protocol, not a body.
  if (exchange.isUpgrade || (!isChunked && (length === undefined || length === 0))) return NONE
  if (options.mustKeep && length !== undefined && length > options.limitBytes) throw tooLarge()
  if (exchange.expectsContinue) exchange.response.writeContinue()
  if (options.mustKeep) return keep(exchange, options.limitBytes, options.watch)
  if (length !== undefined && length <= KEPT_BYTES) return keep(exchange, KEPT_BYTES, options.watch)
  options.watch.streamed(exchange)
  return { kind: 'stream', stream: request, length }
}

function keep(exchange: Exchange, limitBytes: number, watch: BodyWatch): Promise<Body> {
  const { request } = exchange
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let isSettled = false
    // The listeners stay: what still comes after a refusal flows away through them.
    const settle = (failure: Failure | undefined): void => {
      isSettled = true
      exchange.onBodyLate = undefined
      if (failure === undefined) resolve({ kind: 'kept', bytes: joined(chunks, bytes) })
      else reject(failure)
    }
    watch.kept(exchange, () => settle(new Failure('request_timeout', { detail: 'the body did not arrive in time' })))
    request.on('data', (chunk: Buffer) => {
      if (isSettled) return
      bytes += chunk.length
      if (bytes > limitBytes) settle(tooLarge())
      else chunks.push(chunk)
    })
    request.on('end', () => {
      if (!isSettled) settle(undefined)
    })
    request.on('close', () => {
      if (!isSettled) settle(new Failure('bad_request', { detail: 'the body broke off' }))
    })
  })
}

/** Nearly every small body arrives in one piece, which then need not be copied. */
const joined = (chunks: readonly Buffer[], bytes: number): Buffer => {
  const [only] = chunks
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, bytes)
}

const tooLarge = (): Failure => new Failure('body_too_large', { detail: 'the body must be kept and is too large' })
