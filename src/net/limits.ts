import { causeOf, type ReachedLimit, OutboundError, type OutboundErrorKind } from '../core/index.ts'

/** How long a backend may take, in milliseconds (`timeouts` of a route). */
export interface Timeouts {
  /** Until a connection must stand, TLS included; 0 = no bound. */
  readonly connect: number
  /** Until the header section of the answer must be there; 0 = no bound. */
  readonly firstByte: number
  /** Longest silence within an answer's body; 0 = no bound. */
  readonly idle: number
}

/** What a call was held to. */
export interface CallLimits {
  readonly ms: number
  readonly bytes: number
  readonly atOnce: number
}

/** Time was up: `ms` was all there was. */
export const late = (ms: number): OutboundError => new OutboundError('timeout', { limit: { amount: ms, unit: 'ms' } })

/** The same error with where it was to go, and the limit that was reached where it is about one. */
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

/** The timeout of a route that an error of its backend is about; undefined for any other error. */
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

/** What `work` gives. Rejects with `OutboundError` timeout when it has not ended then, by `performance.now()`; it goes on unobserved. */
export async function within<T>(work: Promise<T>, endsAtMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new OutboundError('timeout')), Math.max(0, endsAtMs - performance.now()))
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
