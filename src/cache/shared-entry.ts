import { hash } from 'node:crypto'
import type { EpochMs } from '../core/index.ts'
import { hardEndMs } from './lifetimes.ts'
import type { SharedCodec, SharedSeal } from './shared-ports.ts'

/** A value in the store, sealed. */
export interface SharedEntry<V> {
  /** The last purge known to its creator. */
  readonly epoch: number
  readonly obtainedAtMs: EpochMs
  readonly expiresAtMs: EpochMs
  readonly value: V
}

/** Seals an entry for the record of this name. */
export function sealEntry<V>(name: string, entry: SharedEntry<V>, seal: SharedSeal, codec: SharedCodec<V>): Buffer {
  const { epoch, obtainedAtMs, expiresAtMs, value } = entry
  return seal.seal(name, Buffer.from(JSON.stringify([epoch, obtainedAtMs, expiresAtMs, codec.encode(value)])))
}

/** Opens an entry; undefined if damaged, of another name, or unreadable. */
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

/** Identifies a value without storing it. */
export function digestOf<V>(value: V, codec: SharedCodec<V>): string {
  return hash('sha256', JSON.stringify(codec.encode(value)), 'base64url')
}

/** Whether it may still be used (decisions §4); an entry about to expire is fetched again. */
export function isLive(entry: Pick<SharedEntry<unknown>, 'expiresAtMs' | 'obtainedAtMs'>, nowMs: EpochMs): boolean {
  return hardEndMs(entry.expiresAtMs, entry.obtainedAtMs) > nowMs
}
