import {
  asFailure,
  type Armed,
  type Credential,
  type CredentialConfig,
  type HeaderCredential,
  type Known,
  type Obtain,
} from '../core/index.ts'
import { presentedToken } from '../http/index.ts'
import { headersSetBy, type HeaderForward, type ResolvedAuth } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import { createForwarded } from './forwarded.ts'
import { createSource } from './sources.ts'

export * from './cloud-sts/index.ts'
export { compileSelection, createSelectedObtain } from './selected.ts'
export type { ObtainDeps, SourceOutboundOptions } from './deps.ts'
export { createForwarded, type Forwarded } from './forwarded.ts'
export { refusedByToken } from './refused-by-token.ts'
export { createSource } from './sources.ts'
export type { Fetched, FetchingSource, Plan, Source } from './source.ts'
export { storedCredential } from './stored-credential.ts'

/** The stage `obtain` of one config; close it after its routes are gone. */
export interface OpenObtain extends Obtain {
  /** Whether the credential depends on the request: then requests are read. */
  readsRequest(): boolean
  close(): Promise<void>
}

function arm(
  known: Known,
  credential: Credential,
  config: CredentialConfig,
  forwarded?: readonly HeaderCredential[],
): Armed {
  return (forwarded === undefined ? { known, credential, config } : { known, credential, config, forwarded }) as Armed
}

/**
 * Creates the stage `obtain` of an MCPExternalAuthConfig: a caller's credential for the backend, synchronously if
 * nothing must be fetched, and the headers of `headerForward`. Throws `type_not_runnable` and `config_error` for a
 * config that can't run.
 */
export function createObtain(auth: ResolvedAuth, deps: ObtainDeps, headerForward?: HeaderForward): OpenObtain {
  const source = createSource(auth, deps)
  const forwarded = createForwarded(headerForward, deps)
  const config = describeConfig(auth)
  return {
    obtain(known) {
      const credential = source.obtain(known.caller, presentedToken(known.matched.authorization), known.matched)
      return credential instanceof Promise
        ? credential.then((fetched) => arm(known, fetched, config, forwarded?.current()))
        : arm(known, credential, config, forwarded?.current())
    },
    isFreshAfterRejection: ({ known }) => source.isFreshAfterRejection?.(known.caller, known.matched) === true,
    reject(armed) {
      const hasAnother = source.reject(armed.known.caller, armed.credential, armed.known.matched)
      if (forwarded === undefined || armed.forwarded === undefined) return hasAnother
      return Promise.all([hasAnother, forwarded.reject(armed.forwarded)]).then((each) => each.includes(true))
    },
    ...(source.rejectedAgain === undefined
      ? {}
      : {
          rejectedAgain: async (armed) =>
            source.rejectedAgain?.(armed.known.caller, armed.credential, armed.known.matched),
        }),
    ...(source.widen === undefined
      ? {}
      : { canWiden: () => true, widen: (armed, scopes) => source.widen?.(armed.known.caller, scopes) }),
    lookup: (known) => source.lookup?.(known.caller, known.matched) ?? { from: 'config' },
    readsRequest: () => source.readsRequest === true,
    close: async () => source.close?.(),
  }
}

/** The configuration behind the credentials of a config, for the audit trail. */
function describeConfig(auth: ResolvedAuth): CredentialConfig {
  const { type, namespace, name, configHash, upstream, spec } = auth
  const [header] = headersSetBy(auth)
  const audience = 'audience' in spec ? spec.audience : undefined
  return {
    type,
    config: `${namespace}/${name}`,
    configHash,
    ...(audience === undefined ? {} : { audience }),
    ...(upstream === undefined ? {} : { provider: upstream.provider }),
    ...(header === undefined ? {} : { header: header.name }),
  }
}

/**
 * The stage `obtain` of a route with connected accounts: where a caller has no connection, requests for which
 * `isListing` is true get the credential that `listing` returns.
 */
export function createListingObtain(
  auth: ResolvedAuth,
  own: OpenObtain,
  listing: () => Credential | undefined,
  isListing: (known: Known) => boolean,
): OpenObtain {
  const config = describeConfig(auth)
  const armed = new WeakSet<Armed>()
  const fallback = (known: Known, error: unknown): Armed => {
    const credential = asFailure(error).code === 'not_connected' && isListing(known) ? listing() : undefined
    if (credential === undefined) throw error
    const listed = arm(known, credential, config)
    armed.add(listed)
    return listed
  }
  return {
    ...own,
    obtain(known) {
      try {
        const obtained = own.obtain(known)
        return obtained instanceof Promise ? obtained.catch((error: unknown) => fallback(known, error)) : obtained
      } catch (error) {
        return fallback(known, error)
      }
    },
    reject: (rejected) => (armed.has(rejected) ? false : own.reject(rejected)),
  }
}
