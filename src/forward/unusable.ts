import { Failure } from '../core/index.ts'
import type { ParsedHeaders } from '../http/index.ts'

/**
 * Why an answer can't be forwarded, by its status and headers: a status that is none (RFC 9110 §15), a switch of protocols
 * that nobody asked for, or a transfer coding beside `chunked`, which nobody here would take off again (RFC 9112 §6.1).
 */
export function unusableAnswer(status: number, headers: ParsedHeaders): Failure | undefined {
  if (status < 100 || status > 599) return bad('no status of HTTP')
  if (status === 101) return bad('an upgrade that was not asked for')
  const coding = headers['transfer-encoding']
  if (coding === undefined || coding === 'chunked' || String(coding).toLowerCase() === 'chunked') return undefined
  return bad('a transfer coding other than chunked')
}

const bad = (detail: string): Failure => new Failure('backend_error', { detail })
