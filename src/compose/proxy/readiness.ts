import type { AuthServer } from '../../authserver/index.ts'
import { asFailure, type Clock, headerSecretProblem, type SecretHandle, type Secrets } from '../../core/index.ts'
import type { Readiness } from '../../ops/index.ts'
import { clientsOf, filesNamedBy, forwardedSecrets, type ResolvedRoute, secretsNamedBy } from '../../resources/index.ts'
import { isHeaderForm } from '../../fields/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import { endingCredentials, expiringOf } from './client-credentials.ts'

/** What a configuration has opened, as far as readiness looks at it. */
export interface Resources {
  readonly clock: Clock
  readonly secrets: Secrets
  /** The content of a CA file; undefined while it has never been readable. */
  readonly certificate: (path: string) => () => Buffer | undefined
  /** The token in a file; undefined: the file that the environment names. */
  readonly tokenFile: (path: string | undefined) => SecretHandle
  /** Names of identity providers whose keys were asked for and never came. */
  readonly providersWithoutKeys: () => readonly string[]
  /** What should be otherwise with the stores that it uses. */
  readonly storeRemarks?: () => readonly string[]
  /** Where callers of its routes log in. */
  readonly authServers?: readonly Pick<AuthServer, 'name' | 'readiness'>[]
}

interface Missing {
  /** The reason that callers of the route are answered with. */
  readonly reason: string
  /** Where the config names what is missing, below its `spec`; never what it is called or where it lies. */
  readonly field: string
}

/**
 * Ready as long as it does not drain and at least one route has all the secrets and files that its type names; degraded
 * while another lacks one, while a certificate or token of ours should have been renewed, while the keys of an identity provider never came, while a store evicts or has lost what was in it,
 * and while nobody can log in at an authorization server; none of these makes it unready: restarting this process would
 * not mend it. What holds for one replica only is said.
 */
export function readinessOf(config: ResolvedProxy, held: Resources, isDraining: boolean): Readiness {
  if (isDraining) return { ok: false, detail: { draining: true } }
  if (config.routes.length === 0) return { ok: false, detail: 'no routes' }
  const unusable = config.routes.flatMap((route) => {
    const missing = missingOf(route, held)
    return missing === undefined ? [] : [{ route: route.name, ...missing }]
  })
  const ok = unusable.length < config.routes.length
  const providersWithoutKeys = held.providersWithoutKeys()
  const servers = (held.authServers ?? []).map(({ name, readiness }) => {
    const { isReady, remarks } = readiness()
    return { authServer: name, isReady, remarks }
  })
  const authServers = servers.filter(({ remarks }) => remarks.length > 0)
  const stores = [...new Set(held.storeRemarks?.() ?? [])]
  const expiring = expiringOf(endingCredentials(config, held), held.clock)
  const degraded =
    unusable.length + providersWithoutKeys.length + stores.length + expiring.length > 0 ||
    servers.some(({ isReady }) => !isReady)
  const detail = {
    ...(unusable.length === 0 ? {} : { unusable }),
    ...(providersWithoutKeys.length === 0 ? {} : { providersWithoutKeys }),
    ...(stores.length === 0 ? {} : { stores }),
    ...(expiring.length === 0 ? {} : { expiring }),
    ...(authServers.length === 0 ? {} : { authServers }),
  }
  return {
    ok,
    ...(degraded ? { degraded } : {}),
    ...(Object.keys(detail).length === 0 ? {} : { detail }),
  }
}

/** Later entries only verify what was issued before: taking one away is how a rotation ends. */
const CURRENT_KEYS: ReadonlySet<string> = new Set(['hmacSecretRefs.0', 'signingKeySecretRefs.0'])

/** The first thing without which a route can answer nothing but 500, by the record of its type. */
function missingOf(
  { auth, authServer, headerForward }: ResolvedRoute,
  { secrets, certificate, tokenFile }: Resources,
): Missing | undefined {
  const { spec } = authServer?.server ?? {}
  const server = spec === undefined ? [] : secretsNamedBy({ type: 'embeddedAuthServer' as const, spec })
  const needed = server.filter(({ path }) => CURRENT_KEYS.has(path.join('.')))
  for (const { path, value, holds } of [...secretsNamedBy(auth), ...forwardedSecrets(headerForward), ...needed]) {
    try {
      const handle = secrets.handle(value, holds === 'bytes' ? 'bytes' : 'text')
      const secret = handle.current()
      const problem = isHeaderForm(holds) ? headerSecretProblem(secret.reveal(), holds) : undefined
      // After a value that could be used, that one stays in force.
      if (problem !== undefined && handle.version <= 1) return { reason: 'config_error', field: path.join('.') }
    } catch (error) {
      return { reason: asFailure(error).code, field: path.join('.') }
    }
  }
  const token = clientsOf(auth).find(
    (client) => client?.method === 'tokenFile' && tokenFile(client.tokenFile?.path).version === 0,
  )
  if (token !== undefined) return { reason: 'secret_unavailable', field: 'clientAuth.tokenFile' }
  const authorities = filesNamedBy(auth).filter(({ holds }) => holds === 'certificates')
  const file = authorities.find(({ value }) => certificate(value)() === undefined)
  return file === undefined ? undefined : { reason: 'config_error', field: file.path.join('.') }
}
