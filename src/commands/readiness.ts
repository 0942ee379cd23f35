import { asFailure, type Secrets } from '../core/index.ts'
import type { Readiness } from '../ops/index.ts'
import { secretsNamedBy, type ResolvedProxy } from '../resources/index.ts'

/**
 * Ready as long as it does not drain and at least one route has all its secrets; degraded while another lacks one. An
 * identity provider that is down does not count: restarting this process would not mend it.
 */
export function readinessOf(
  config: ResolvedProxy,
  { secrets, isDraining }: { readonly secrets: Secrets; readonly isDraining: boolean },
): Readiness {
  if (isDraining) return { ok: false, detail: { draining: true } }
  const unusable = config.routes.flatMap((route) => {
    try {
      for (const ref of secretsNamedBy(route.auth)) secrets.handle(ref).current()
      return []
    } catch (error) {
      return [{ route: route.name, reason: asFailure(error).code }]
    }
  })
  if (unusable.length === 0)
    return { ok: config.routes.length > 0, ...(config.routes.length > 0 ? {} : { detail: 'no routes' }) }
  return { ok: unusable.length < config.routes.length, degraded: true, detail: { unusable } }
}
