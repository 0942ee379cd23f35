import { hardEndMs } from './lifetimes.ts'
import type { SharedCodec, SharedSeal } from './shared-ports.ts'

/** A value as it lies in the store, sealed. */
export interface SharedEntry<V> {
  /** Another for each value that was made: tells a refused one from its successor. */
  readonly id: string
  /** The last purge that its maker knew of. */
  readonly epoch: number
  readonly obtainedAtMs: number
  readonly expiresAtMs: number
  readonly value: V
}

/** Writes an entry for the record of this name. */
export function sealEntry<V>(name: string, entry: SharedEntry<V>, seal: SharedSeal, codec: SharedCodec<V>): Buffer {
  const { id, epoch, obtainedAtMs, expiresAtMs, value } = entry
  return seal.seal(name, Buffer.from(JSON.stringify([id, epoch, obtainedAtMs, expiresAtMs, codec.encode(value)])))
}

/** Reads it back; undefined for what was damaged, moved here from another name, or can't be opened or understood. */
export async function openEntry<V>(
  name: string,
  sealed: Buffer,
  seal: SharedSeal,
  codec: SharedCodec<V>,
): Promise<SharedEntry<V> | undefined> {
  const opened = await seal.open(name, sealed).catch(() => undefined)
  if (opened === undefined) return undefined
  const parts: unknown = JSON.parse(opened.plain.toString())
  if (!Array.isArray(parts)) return undefined
  const [id, epoch, obtainedAtMs, expiresAtMs, written] = parts as readonly unknown[]
  const value = codec.decode(written)
  const isWhole = typeof id === 'string' && [epoch, obtainedAtMs, expiresAtMs].every(Number.isFinite)
  if (!isWhole || value === undefined) return undefined
  return { id, epoch: Number(epoch), obtainedAtMs: Number(obtainedAtMs), expiresAtMs: Number(expiresAtMs), value }
}

/** Whether it would still be given out (decisions §4): an entry that is about to end is made anew instead. */
export function isLive(entry: Pick<SharedEntry<unknown>, 'expiresAtMs' | 'obtainedAtMs'>, nowMs: number): boolean {
  return hardEndMs(entry.expiresAtMs, entry.obtainedAtMs) > nowMs
}
