import { type SpanContext, TraceFlags } from '@opentelemetry/api'

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Parses a `traceparent` (W3C Trace Context §3.2); undefined if invalid. */
export function parseTraceparent(header: string | undefined): SpanContext | undefined {
  const [, version = '', traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(header ?? '') ?? []
  // Version 00 ends with its flags; version ff is invalid.
  if (version === '' || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true }
}

/** Formats a `traceparent`, version 00. */
export const formatTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`
