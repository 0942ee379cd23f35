import type * as authServerRoom from '../../authserver/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type * as storageRoom from '../../storage/index.ts'
import type * as telemetryRoom from '../../telemetry/index.ts'

/** Parts of the program that only some configurations need, and that others neither wait for nor keep in memory. */
export interface LateRooms {
  /** There when the configuration has an authorization server. */
  readonly authServer: typeof authServerRoom | undefined
  /** There when something is stored: by an authorization server, or for the credentials that replicas share. */
  readonly storage: typeof storageRoom | undefined
  /** There when traces of a route go somewhere. */
  readonly telemetry: typeof telemetryRoom | undefined
}

/** Loads what `config` needs of them. */
export async function loadRooms({ authServers, cache, routes }: ResolvedProxy): Promise<LateRooms> {
  const hasServers = authServers.length > 0
  const [authServer, storage, telemetry] = await Promise.all([
    hasServers ? import('../../authserver/index.ts') : undefined,
    hasServers || cache !== undefined ? import('../../storage/index.ts') : undefined,
    routes.some((route) => route.telemetry !== undefined) ? import('../../telemetry/index.ts') : undefined,
  ])
  return { authServer, storage, telemetry }
}

/** A room that the configuration needs; that it was not loaded for it is a mistake of ours. */
export function loaded<Room>(room: Room | undefined): Room {
  if (room === undefined)
    throw new TypeError('a part of the program was not loaded for the configuration that needs it')
  return room
}
