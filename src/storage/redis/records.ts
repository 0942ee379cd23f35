import { randomBytes } from 'node:crypto'
import type { KeptValue, StoredValue } from '../port.ts'

const VERSION_BYTES = 12
const FENCE_DIGITS = 16
const HEAD_BYTES = VERSION_BYTES + FENCE_DIGITS

/** A random version: 12 ASCII characters. */
export function newVersion(): string {
  return randomBytes((VERSION_BYTES / 4) * 3).toString('base64url')
}

/** Format in Redis: version, fence of the last write under a lock, value. `scripts.ts` uses the same order. */
export function encodeRecord(version: string, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from(version + fenceDigits(0)), value])
}

/** Twelve bytes as a string of the same length: foreign data may have non-ASCII versions. */
export const versionArgument = (version: string | undefined): Buffer => Buffer.from(version ?? '', 'latin1')

/** Undefined if shorter than a record. */
export function decodeRecord(reply: unknown): StoredValue | undefined {
  if (!Buffer.isBuffer(reply) || reply.length < HEAD_BYTES) return undefined
  return { version: reply.toString('latin1', 0, VERSION_BYTES), value: reply.subarray(HEAD_BYTES) }
}

/** The same with the result of `PTTL`; foreign data without a time to live are kept forever. */
export function decodeKept(reply: unknown, pttl: unknown): KeptValue | undefined {
  const stored = decodeRecord(reply)
  if (stored === undefined) return undefined
  const leftMs = typeof pttl === 'number' ? pttl : 0
  return { ...stored, leftMs: leftMs === -1 ? Infinity : Math.max(0, leftMs) }
}

export function fenceDigits(fence: number): string {
  return String(fence).padStart(FENCE_DIGITS, '0')
}
