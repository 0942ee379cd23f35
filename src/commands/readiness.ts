import { asFailure, type Secrets } from '../core/index.ts'
import type { Readiness } from '../ops/index.ts'
import type { ResolvedAuth, ResolvedProxy, SecretRef } from '../resources/index.ts'

/** The secrets without which a route can answer nothing but 500. */
function secretsOf(auth: ResolvedAuth): readonly SecretRef[] {
  switch (auth.type) {
    case 'headerInjection':
      return [auth.spec.valueSecretRef]
    case 'bearerToken':
      return [auth.spec.tokenSecretRef]
    case 'tokenExchange':
      return [auth.spec.clientSecretRef, auth.spec.actorTokenSecretRef].filter((ref) => ref !== undefined)
    default:
      return []
  }
}

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
      for (const ref of secretsOf(route.auth)) secrets.handle(ref).current()
      return []
    } catch (error) {
      return [{ route: route.name, reason: asFailure(error).code }]
    }
  })
  if (unusable.length === 0)
    return { ok: config.routes.length > 0, ...(config.routes.length > 0 ? {} : { detail: 'no routes' }) }
  return { ok: unusable.length < config.routes.length, degraded: true, detail: { unusable } }
}
