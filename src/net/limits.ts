import {
  causeOf,
  type MonotonicMs,
  monotonicNow,
  OutboundError,
  type OutboundErrorKind,
  type ReachedLimit,
} from '../core/index.ts'

/** Timeouts of a backend in milliseconds (`timeouts` of a route). */
export interface Timeouts {
  /** Connect timeout, TLS included; 0 = unlimited. */
  readonly connect: number
  /** Timeout for the response head; 0 = unlimited. */
  readonly firstByte: number
  /** Maximum pause within a response body; 0 = unlimited. */
  readonly idle: number
}

/** Limits of a call. */
export interface CallLimits {
  readonly ms: number
  readonly bytes: number
  readonly atOnce: number
}

/** Timeout error after `ms`. */
export const late = (ms: number): OutboundError => new OutboundError('timeout', { limit: { amount: ms, unit: 'ms' } })

/** Adds the URL and the reached limit to an error. */
export function placed(error: OutboundError, url: string, { ms, bytes, atOnce }: CallLimits): OutboundError {
  const { kind, cause, retryAfterSeconds, isSent } = error
  const limits: Partial<Record<OutboundErrorKind, ReachedLimit>> = {
    timeout: { amount: ms, unit: 'ms' },
    too_large: { amount: bytes, unit: 'bytes' },
    overloaded: { amount: atOnce, unit: 'at once' },
  }
  const limit = error.limit ?? limits[kind]
  const at = error.at ?? (URL.canParse(url) ? new URL(url).origin : undefined)
  return new OutboundError(kind, { cause, retryAfterSeconds, isSent, limit, at })
}

/** The route timeout that caused a backend error; undefined for other errors. */
export function limitOfBackend(error: unknown, { connect, firstByte, idle }: Timeouts): ReachedLimit | undefined {
  const { code, kind } = causeOf(error)
  switch (code ?? kind) {
    // A tunnel through the egress proxy.
    case 'timeout':
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'WIRE_CROWDED':
      return ofRoute(connect, 'timeouts.connect')
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'WIRE_FIRST_BYTE':
      return ofRoute(firstByte, 'timeouts.firstByte')
    case 'UND_ERR_BODY_TIMEOUT':
    case 'WIRE_IDLE':
      return ofRoute(idle, 'timeouts.idle')
    default:
      return undefined
  }
}

const ofRoute = (amount: number, name: string): ReachedLimit => ({
  amount,
  unit: 'ms',
  setting: { name, of: 'the route' },
})

/**
 * Awaits `work` until `endsAtMs`; then rejects with `OutboundError` timeout, while `work`
 * continues unobserved.
 */
export async function within<T>(work: Promise<T>, endsAtMs: MonotonicMs): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new OutboundError('timeout')), Math.max(0, endsAtMs - monotonicNow()))
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
