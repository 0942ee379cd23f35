import type * as authServerModule from '../../authserver/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type * as telemetryModule from '../../telemetry/index.ts'

/** Modules that only some configurations need: each takes 30 ms or more of a start, and 6 MiB. */
export interface LazyModules {
  /** Defined when the configuration has an authorization server. */
  readonly authServer: typeof authServerModule | undefined
  /** Defined when a route sends traces. */
  readonly telemetry: typeof telemetryModule | undefined
}

/** Loads what `config` needs of them. */
export async function loadModules({ authServers, routes }: ResolvedProxy): Promise<LazyModules> {
  const [authServer, telemetry] = await Promise.all([
    authServers.length > 0 ? import('../../authserver/index.ts') : undefined,
    routes.some((route) => route.telemetry !== undefined) ? import('../../telemetry/index.ts') : undefined,
  ])
  return { authServer, telemetry }
}
