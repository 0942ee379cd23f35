import { Failure, type Body, type ReachedLimit } from '../core/index.ts'
import type { BodyWatch } from './body-watch.ts'
import { Gathered } from './gathered.ts'
import type { InboundRequest } from './inbound-request.ts'

/** Bodies up to this size are buffered, so that they can be sent again (decisions §4). */
export const KEPT_BYTES = 1024 * 1024
const ALL_BODIES = { name: 'listen.bufferedBodiesLimit', of: 'the ProxyConfig' }
/** `Retry-After` in seconds if there is no memory for a body. */
const FULL_RETRY_SECONDS = 2

export interface BodyOptions {
  /** The applier hashes the body, so it must be complete. */
  readonly mustKeep: boolean
  /** Limit in bytes of a body that must be buffered; larger is `body_too_large`. */
  readonly limitBytes: number
  /** The setting of that limit; undefined if it is fixed. */
  readonly limitSetting?: ReachedLimit['setting']
  readonly watch: BodyWatch
}

const NONE: Body = Object.freeze({ kind: 'none' })

/**
 * The body of a request: none, buffered (small, or required as a whole), or a stream. Sends `100 Continue` first if
 * the client waits for it. Optional buffering becomes streaming for large bodies, for slow ones of unknown length,
 * and without memory. Rejects with `body_too_large`, with `request_timeout` if a buffered body does not arrive in
 * time, with `overloaded` without memory, and with the rejection of malformed input.
 */
export function takeBody(inbound: InboundRequest, options: BodyOptions): Body | Promise<Body> {
  const { request } = inbound
  const { mustKeep, watch } = options
  const announced = request.headers['content-length']
  const isChunked = request.headers['transfer-encoding'] !== undefined
  const length = announced === undefined ? undefined : Number(announced)
  // An upgrade request is followed by the other protocol, not by a body.
  if (request.isUpgrade || (!isChunked && (length === undefined || length === 0))) return NONE
  if (mustKeep && length !== undefined && length > options.limitBytes) throw tooLarge(options)
  // The announced length is reserved now, so that concurrent bodies are not promised the same memory.
  const isKept = (mustKeep || (length ?? 0) <= KEPT_BYTES) && watch.budget.take(inbound, length ?? 0)
  if (mustKeep && !isKept) throw full(watch)
  if (!isKept && watch.streams.isFull) throw memoryInUse(watch)
  if (request.expectsContinue) inbound.response.writeContinue()
  if (isKept) return collect(inbound, options, length)
  watch.streamed(inbound)
  return { kind: 'stream', stream: request, length }
}

/** Buffers a body as it arrives, or returns it as a stream from its beginning. */
function collect(inbound: InboundRequest, options: BodyOptions, length: number | undefined): Body | Promise<Body> {
  const { request } = inbound
  const { mustKeep, watch } = options
  const limitBytes = mustKeep ? options.limitBytes : KEPT_BYTES
  const whole = request.takeWhole()
  if (whole !== undefined) return kept(whole, inbound, options, length)
  return new Promise((resolve, reject) => {
    let gathered: Gathered | undefined = new Gathered(length, limitBytes)
    let cancel: (() => void) | undefined
    /** Returns the buffered bytes; undefined if settled before. */
    const settle = (): Gathered | undefined => {
      const had = gathered
      gathered = undefined
      cancel?.()
      inbound.onBodyLate = inbound.onRefused = undefined
      return had
    }
    // The listeners stay: they discard data that arrives after a rejection.
    const fail = (failure: Failure): void => {
      if (settle() === undefined) return
      watch.budget.release(inbound)
      reject(failure)
    }
    const stream = (unkept?: Buffer): void => {
      if (watch.streams.isFull) return fail(memoryInUse(watch))
      const had = settle()
      if (had === undefined) return
      request.off('data', onData).pause()
      giveBack(inbound, watch, had.bytes(), unkept)
      watch.streamed(inbound)
      resolve({ kind: 'stream', stream: request, length })
    }
    const onData = (chunk: Buffer): void => {
      if (gathered === undefined) return
      if (length !== undefined) gathered.add(chunk)
      else if (gathered.length + chunk.length > limitBytes) {
        if (mustKeep) fail(tooLarge(options))
        else stream(chunk)
      } else if (!watch.budget.take(inbound, gathered.costOf(chunk))) {
        if (mustKeep) fail(full(watch))
        else stream(chunk)
      } else gathered.add(chunk)
    }
    const onEnd = (): void => {
      const had = settle()
      if (had !== undefined) resolve({ kind: 'kept', bytes: had.bytes() })
    }
    const onClose = (): void => fail(new Failure('bad_request', { detail: 'the body broke off' }))
    inbound.onRefused = fail
    if (mustKeep || length !== undefined)
      watch.kept(inbound, (limit) => fail(new Failure('request_timeout', { rule: 'body_late', limit })))
    else cancel = watch.unannounced(() => stream())
    request.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

/** A returned body is sent in pieces of this size, so that its memory is released gradually. */
const PIECE_BYTES = 64 * 1024

/** Puts the buffered bytes back before the rest; they count until they are read. */
function giveBack(inbound: InboundRequest, { budget }: BodyWatch, bytes: Buffer, unkept: Buffer | undefined): void {
  const { request } = inbound
  if (unkept !== undefined) request.unshift(unkept)
  const lastAt = Math.floor(Math.max(0, bytes.length - 1) / PIECE_BYTES) * PIECE_BYTES
  if (bytes.length > 0)
    for (let at = lastAt; at >= 0; at -= PIECE_BYTES) request.unshift(bytes.subarray(at, at + PIECE_BYTES))
  let left = bytes.length
  const onTaken = (chunk: Buffer): void => {
    left -= chunk.length
    if (left > 0) return
    request.off('data', onTaken)
    budget.release(inbound)
  }
  // Data flows only on demand: the stream was paused.
  if (left > 0) request.on('data', onTaken)
  else budget.release(inbound)
}

/** A body that has arrived already. */
function kept(bytes: Buffer, inbound: InboundRequest, options: BodyOptions, length: number | undefined): Body {
  const { mustKeep, watch } = options
  if (length !== undefined) return { kind: 'kept', bytes }
  if (bytes.length > (mustKeep ? options.limitBytes : KEPT_BYTES)) throw tooLarge(options)
  if (watch.budget.take(inbound, bytes.length)) return { kind: 'kept', bytes }
  if (mustKeep) throw full(watch)
  inbound.request.unshift(bytes)
  watch.streamed(inbound)
  return { kind: 'stream', stream: inbound.request, length: undefined }
}

const tooLarge = ({ limitBytes, limitSetting }: BodyOptions): Failure =>
  new Failure('body_too_large', {
    detail: 'the body must be kept and is too large',
    limit: { amount: limitBytes, unit: 'bytes', setting: limitSetting },
  })
/** Too many streamed bodies wait for their backends. */
const memoryInUse = ({ streams }: BodyWatch): Failure =>
  new Failure('overloaded', {
    detail: 'memory for streamed bodies is in use',
    limit: { amount: streams.limitBytes, unit: 'bytes', setting: { name: 'the memory limit', of: 'the process' } },
    retryAfterSeconds: FULL_RETRY_SECONDS,
  })

const full = ({ budget }: BodyWatch): Failure =>
  new Failure('overloaded', {
    detail: 'memory for buffered bodies is in use',
    limit: { amount: budget.limitBytes, unit: 'bytes', setting: ALL_BODIES },
    retryAfterSeconds: FULL_RETRY_SECONDS,
  })
