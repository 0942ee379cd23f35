import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { causeOf, type Log } from '../core/index.ts'

/** File descriptors reserved for files, listeners, and connections to services. */
const RESERVED = 64
/** Minimum connections, even with few descriptors. */
const LEAST = 16

/** Why a connection was rejected: the limit, too few file descriptors, or a system error. */
export type RefusedReason = 'limit' | 'descriptors' | 'error'

export interface ConnectionLimit {
  /** Maximum concurrent connections. */
  readonly max: number
  /** Counts a connection from elsewhere that exceeds the limit. */
  refuse(): void
  /** Called periodically with the number of connections: logs when they are accepted again. */
  look(count: number): void
}

/**
 * Limits the connections of a server to `wanted`, and to what the file descriptors of the process allow with
 * `perConnection` each. The limit must come first: without descriptors the system closes new connections silently.
 * Every rejection is counted, and logged once until there is capacity again.
 */
export function limitConnections(
  server: Server,
  options: {
    readonly wanted: number
    readonly perConnection: number
    /** Descriptor limit of the process; undefined if unknown. Default: the system's value. */
    readonly descriptors?: number | undefined
    readonly log: Log
    readonly onRefused: (reason: RefusedReason) => void
  },
): ConnectionLimit {
  const { wanted, perConnection, descriptors = openFilesLimit(), log, onRefused } = options
  const carried = carriedConnections(perConnection, descriptors)
  const max = Math.min(wanted, carried)
  let refused = 0
  server.maxConnections = max
  const refuse = (reason: RefusedReason, fields: object): void => {
    onRefused(reason)
    if (refused++ === 0) log.warn({ reason, ...fields }, 'connection limit reached, rejecting new connections')
  }
  const drop = (): void => refuse(carried < wanted ? 'descriptors' : 'limit', { max, descriptors })
  server.on('drop', drop)
  // Without a listener, an accept error would terminate the process.
  server.on('error', (error) => refuse('error', { cause: causeOf(error) }))

  return {
    max,
    refuse: drop,
    look(count) {
      if (refused === 0 || count >= max * 0.9) return
      log.info({ refused }, 'accepting new connections again')
      refused = 0
    },
  }
}

/**
 * Maximum connections for the file descriptors of the process with `perConnection` each; `Infinity` if their number
 * is unknown.
 */
export function carriedConnections(perConnection: number, descriptors = openFilesLimit()): number {
  if (descriptors === undefined) return Infinity
  return Math.max(LEAST, Math.floor((descriptors - RESERVED) / perConnection))
}

/** Maximum open files of this process on Linux; Node has raised it to the hard limit. */
function openFilesLimit(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1]
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return undefined
  }
}
