import { totalmem } from 'node:os'

const MIB = 1024 * 1024
/** What a process that has served at 32 connections has resident before it keeps a body, and garbage of a burst. */
const ITSELF_BYTES = 256 * MIB
/** Of the rest: what fragments and what TLS holds has its part as well. */
const BODIES_SHARE = 1 / 2
/** The process that starts workers and speaks for them. */
const SUPERVISOR_BYTES = 64 * MIB
const LEAST_BYTES = 16 * MIB
const MOST_BYTES = 256 * MIB
/** Of the rest: for as much as waits for a client, the connection to its backend holds as much again. */
const UNREAD_SHARE = 1 / 8
const LEAST_UNREAD_BYTES = 8 * MIB
const MOST_UNREAD_BYTES = 128 * MIB
/** Of the rest, once for callers and once for credentials: whoever is forgotten costs a verification or a call to a service. */
const REMEMBERED_SHARE = 1 / 8
const LEAST_REMEMBERED_BYTES = 24 * MIB
/** More than a hundred thousand of either. */
const MOST_REMEMBERED_BYTES = 256 * MIB

/**
 * Bytes of memory that this process may use: `configured`, else the limit of its control group (memory.max, or
 * memory.limit_in_bytes of the first version), else what the machine has.
 */
const memoryLimitOf = (configured: number | undefined): number =>
  // Node says 2^64 where there is no limit.
  configured ?? Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())

/** What the memory of a proxy is shared out as, in bytes; logged at start. */
export interface MemoryShares {
  readonly memoryLimitBytes: number
  /** For request bodies that are kept by one process. */
  readonly keptBodiesBytes: number
  /** For answers of one process that wait for their clients. */
  readonly unreadAnswersBytes: number
  /** For verified callers that one process remembers, of one `auth` section. */
  readonly callersBytes: number
  /** For fetched credentials that one process keeps, unless their number is configured. */
  readonly credentialsBytes: number
}

export interface MemoryOptions {
  /** Bytes that all processes together may use. Default: as `memoryLimitOf` finds. */
  readonly memoryLimitBytes?: number | undefined
  /** Processes that serve. Default 1. */
  readonly workers?: number | undefined
}

/** How a proxy shares out its memory; `keptBodiesBytes` of a configuration is taken as it is. */
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
