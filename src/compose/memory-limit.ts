import { totalmem } from 'node:os'

const MIB = 1024 * 1024
/** Resident memory of a process after serving 32 connections, without request bodies but with garbage of a burst. */
const ITSELF_BYTES = 256 * MIB
/** Share of the rest for request bodies; fragmentation and TLS need their part too. */
const BODIES_SHARE = 1 / 2
/** Memory of the supervisor process. */
const SUPERVISOR_BYTES = 64 * MIB
const LEAST_BYTES = 16 * MIB
const MOST_BYTES = 256 * MIB
/** Share of the rest for unread responses; the backend connection of each buffers as much again. */
const UNREAD_SHARE = 1 / 8
const LEAST_UNREAD_BYTES = 8 * MIB
const MOST_UNREAD_BYTES = 128 * MIB
/** Share of the rest for each of callers and credentials: an eviction costs one verification or one call to a service. */
const REMEMBERED_SHARE = 1 / 8
const LEAST_REMEMBERED_BYTES = 24 * MIB
/** Enough for more than a hundred thousand entries. */
const MOST_REMEMBERED_BYTES = 256 * MIB

/**
 * Memory limit in bytes: `configured`, else the limit of the control group (v2 `memory.max`, v1
 * `memory.limit_in_bytes`), else the memory of the machine.
 */
const memoryLimitOf = (configured: number | undefined): number =>
  // Node reports 2^64 without a limit.
  configured ?? Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())

/** Memory budget of a proxy in bytes; logged at start. */
export interface MemoryShares {
  readonly memoryLimitBytes: number
  /** Buffered request bodies, per process. */
  readonly keptBodiesBytes: number
  /** Responses that clients have not read yet, per process. */
  readonly unreadAnswersBytes: number
  /** Cached verified callers, per process and `auth` section. */
  readonly callersBytes: number
  /** Cached credentials, per process, unless their number is configured. */
  readonly credentialsBytes: number
}

export interface MemoryOptions {
  /** Bytes for all processes together. Default: the result of `memoryLimitOf`. */
  readonly memoryLimitBytes?: number | undefined
  /** Number of serving processes. Default 1. */
  readonly workers?: number | undefined
}

/** Computes the memory budget; a configured `keptBodiesBytes` is used unchanged. */
export function memorySharesOf(
  { memoryLimitBytes: configured, workers = 1 }: MemoryOptions,
  keptBodiesBytes?: number,
): MemoryShares {
  const memoryLimitBytes = memoryLimitOf(configured)
  const forServing = workers === 1 ? memoryLimitBytes : (memoryLimitBytes - SUPERVISOR_BYTES) / workers
  const rest = forServing - ITSELF_BYTES
  const between = (least: number, share: number, most: number): number =>
    Math.min(most, Math.max(least, Math.floor(rest * share)))
  return {
    memoryLimitBytes,
    keptBodiesBytes: keptBodiesBytes ?? between(LEAST_BYTES, BODIES_SHARE, MOST_BYTES),
    unreadAnswersBytes: between(LEAST_UNREAD_BYTES, UNREAD_SHARE, MOST_UNREAD_BYTES),
    callersBytes: between(LEAST_REMEMBERED_BYTES, REMEMBERED_SHARE, MOST_REMEMBERED_BYTES),
    credentialsBytes: between(LEAST_REMEMBERED_BYTES, REMEMBERED_SHARE, MOST_REMEMBERED_BYTES),
  }
}
