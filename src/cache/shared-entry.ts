import { hash } from 'node:crypto'
import { hardEndMs } from './lifetimes.ts'
import type { SharedCodec, SharedSeal } from './shared-ports.ts'

/** A value as it lies in the store, sealed. */
export interface SharedEntry<V> {
  /** The last purge that its maker knew of. */
  readonly epoch: number
  readonly obtainedAtMs: number
  readonly expiresAtMs: number
  readonly value: V
}

/** Writes an entry for the record of this name. */
export function sealEntry<V>(name: string, entry: SharedEntry<V>, seal: SharedSeal, codec: SharedCodec<V>): Buffer {
  const { epoch, obtainedAtMs, expiresAtMs, value } = entry
  return seal.seal(name, Buffer.from(JSON.stringify([epoch, obtainedAtMs, expiresAtMs, codec.encode(value)])))
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
  const [epoch, obtainedAtMs, expiresAtMs, written] = parts as readonly unknown[]
  const value = codec.decode(written)
  const isWhole = [epoch, obtainedAtMs, expiresAtMs].every(Number.isFinite)
  if (!isWhole || value === undefined) return undefined
  return { epoch: Number(epoch), obtainedAtMs: Number(obtainedAtMs), expiresAtMs: Number(expiresAtMs), value }
}

/** Tells a value from its successor without keeping it. */
export function digestOf<V>(value: V, codec: SharedCodec<V>): string {
  return hash('sha256', JSON.stringify(codec.encode(value)), 'base64url')
}

/** Whether it would still be given out (decisions §4): an entry that is about to end is made anew instead. */
export function isLive(entry: Pick<SharedEntry<unknown>, 'expiresAtMs' | 'obtainedAtMs'>, nowMs: number): boolean {
  return hardEndMs(entry.expiresAtMs, entry.obtainedAtMs) > nowMs
}
