import { Failure, type Body, type ReachedLimit } from '../core/index.ts'
import type { BodyWatch } from './body-watch.ts'
import { Gathered } from './gathered.ts'
import type { InboundRequest } from './inbound-request.ts'

/** A body of up to this many bytes is kept so that it can be sent again (decisions §4). */
export const KEPT_BYTES = 1024 * 1024
const ALL_BODIES = { name: 'listen.bufferedBodiesLimit', of: 'the ProxyConfig' }
/** When to come back, in seconds, after there was no room to keep a body. */
const FULL_RETRY_SECONDS = 2

export interface BodyOptions {
  /** The applier hashes the body, so all of it must be there. */
  readonly mustKeep: boolean
  /** Bytes of a body that must be kept; larger is `body_too_large`. */
  readonly limitBytes: number
  /** Where that is changed; undefined where it is fixed. */
  readonly limitSetting?: ReachedLimit['setting']
  readonly watch: BodyWatch
}

const NONE: Body = Object.freeze({ kind: 'none' })

/**
 * The body of a request: none, kept (small, or needed whole), or a stream. Asks the client for it first when the client
 * waits to be asked. What need not be kept is streamed when it is large, when it has no known length and takes its time,
 * and when there is no room. Rejects with `body_too_large`, with `request_timeout` when a body that is kept does not
 * arrive in time, and with `overloaded` when there is no room for one that must be kept.
 */
export function takeBody(inbound: InboundRequest, options: BodyOptions): Body | Promise<Body> {
  const { request } = inbound
  const { mustKeep, watch } = options
  const announced = request.headers['content-length']
  const isChunked = request.headers['transfer-encoding'] !== undefined
  const length = announced === undefined ? undefined : Number(announced)
  // After an upgrade request comes the other protocol, not a body.
  if (inbound.isUpgrade || (!isChunked && (length === undefined || length === 0))) return NONE
  if (mustKeep && length !== undefined && length > options.limitBytes) throw tooLarge(options)
  const hasRoom = watch.budget.hasRoom(inbound, length ?? 0)
  if (mustKeep && !hasRoom) throw full(watch)
  if (inbound.expectsContinue) inbound.response.writeContinue()
  if (mustKeep || (hasRoom && (length ?? 0) <= KEPT_BYTES)) return collect(inbound, options, length)
  watch.streamed(inbound)
  return { kind: 'stream', stream: request, length }
}

/** Keeps a body as it arrives, or gives it back as a stream from its beginning. */
function collect(inbound: InboundRequest, options: BodyOptions, length: number | undefined): Body | Promise<Body> {
  const { request } = inbound
  const { mustKeep, watch } = options
  const limitBytes = mustKeep ? options.limitBytes : KEPT_BYTES
  const whole = request.takeWhole?.()
  if (whole !== undefined) return kept(whole, inbound, options, limitBytes)
  return new Promise((resolve, reject) => {
    const gathered = new Gathered(length, limitBytes)
    let isSettled = false
    let cancel: (() => void) | undefined
    const settle = (): void => {
      isSettled = true
      cancel?.()
      inbound.onBodyLate = undefined
    }
    // The listeners stay: what still comes after a refusal flows away through them.
    const fail = (failure: Failure): void => {
      settle()
      watch.budget.release(inbound)
      reject(failure)
    }
    const stream = (unkept?: Buffer): void => {
      settle()
      watch.budget.release(inbound)
      request.off('data', onData).pause()
      if (unkept !== undefined) request.unshift(unkept)
      if (gathered.length > 0) request.unshift(gathered.bytes())
      watch.streamed(inbound)
      resolve({ kind: 'stream', stream: request, length })
    }
    const onData = (chunk: Buffer): void => {
      if (isSettled) return
      if (gathered.length + chunk.length > limitBytes) {
        if (mustKeep) fail(tooLarge(options))
        else stream(chunk)
      } else if (!watch.budget.take(inbound, gathered.costOf(chunk))) {
        if (mustKeep) fail(full(watch))
        else stream(chunk)
      } else gathered.add(chunk)
    }
    const onEnd = (): void => {
      if (isSettled) return
      settle()
      resolve({ kind: 'kept', bytes: gathered.bytes() })
    }
    const onClose = (): void => {
      if (!isSettled) fail(new Failure('bad_request', { detail: 'the body broke off' }))
    }
    if (mustKeep || length !== undefined)
      watch.kept(inbound, (limit) =>
        fail(new Failure('request_timeout', { detail: 'the body did not arrive in time', limit })),
      )
    else cancel = watch.unannounced(() => stream())
    request.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

/** One that has come already. */
function kept(bytes: Buffer, inbound: InboundRequest, options: BodyOptions, limitBytes: number): Body {
  if (bytes.length > limitBytes) throw tooLarge(options)
  if (options.watch.budget.take(inbound, bytes.length)) return { kind: 'kept', bytes }
  if (options.mustKeep) throw full(options.watch)
  inbound.request.unshift(bytes)
  options.watch.streamed(inbound)
  return { kind: 'stream', stream: inbound.request, length: undefined }
}

const tooLarge = ({ limitBytes, limitSetting }: BodyOptions): Failure =>
  new Failure('body_too_large', {
    detail: 'the body must be kept and is too large',
    limit: { amount: limitBytes, unit: 'bytes', setting: limitSetting },
  })
const full = ({ budget }: BodyWatch): Failure =>
  new Failure('overloaded', {
    detail: 'no room to keep another body, with those that are kept now',
    limit: { amount: budget.limitBytes, unit: 'bytes', setting: ALL_BODIES },
    retryAfterSeconds: FULL_RETRY_SECONDS,
  })
