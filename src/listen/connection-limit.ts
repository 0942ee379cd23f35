import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { causeOf, type Log } from '../core/index.ts'

/** Descriptors that a process needs beside its connections: files, listeners, connections to services. */
const RESERVED = 64
/** However few there are, somebody is served. */
const LEAST = 16

/** Why a connection was not accepted: the limit, too few file descriptors, or an error of the system. */
export type RefusedReason = 'limit' | 'descriptors' | 'error'

export interface ConnectionLimit {
  /** Most connections at once. */
  readonly max: number
  /** To be called for a connection that came another way and is one too many. */
  refuse(): void
  /** To be called now and then with the number of connections: says when they are accepted again. */
  look(count: number): void
}

/**
 * Bounds the connections of a server: `wanted` at most, and no more than the file descriptors of the process carry with
 * `perConnection` for each. That comes first because nobody is told when descriptors run out: the system's library then
 * closes new connections in silence. What is refused is counted each time and logged once, until there is room again.
 */
export function limitConnections(
  server: Server,
  options: {
    readonly wanted: number
    readonly perConnection: number
    /** Descriptors that the process may have; undefined when that is not known. Default: what the system says. */
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
    if (refused++ === 0) log.warn({ reason, ...fields }, 'new connections are refused')
  }
  const drop = (): void => refuse(carried < wanted ? 'descriptors' : 'limit', { max, descriptors })
  server.on('drop', drop)
  // Without anybody to hear it, an error of accepting would end the process.
  server.on('error', (error) => refuse('error', { cause: causeOf(error) }))

  return {
    max,
    refuse: drop,
    look(count) {
      if (refused === 0 || count >= max * 0.9) return
      log.info({ refused }, 'new connections are accepted again')
      refused = 0
    },
  }
}

/**
 * The connections that the file descriptors of the process carry where each of them has `perConnection`; `Infinity` where
 * their number is not known.
 */
export function carriedConnections(perConnection: number, descriptors = openFilesLimit()): number {
  if (descriptors === undefined) return Infinity
  return Math.max(LEAST, Math.floor((descriptors - RESERVED) / perConnection))
}

/** Most open files of this process, as Linux says it; Node has raised it to the hard limit by then. */
function openFilesLimit(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1]
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return undefined
  }
}
