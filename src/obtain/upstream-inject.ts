import { Failure, Secret, type AuthenticatedCaller, type Credential, type UpstreamToken } from '../core/index.ts'
import type { ResolvedAuthOf } from '../resources/index.ts'
import { createConnectedSource } from './connected.ts'
import type { ObtainDeps } from './deps.ts'
import type { Source } from './source.ts'
import { hasUpstreamToken } from './subject-token-source.ts'

/** A caller's cached credential, usable without another lookup. */
interface Given {
  readonly credential: Credential
  readonly token: UpstreamToken
}

/**
 * Type `upstreamInject` (decisions §3.6): the access token that the embedded authorization server holds for the caller's
 * session at one upstream provider, as `Authorization: Bearer`. The server keeps and refreshes it; what is cached here
 * goes with the caller's token, which is refused as soon as its session has ended. Throws `type_not_runnable` without such a
 * server; `obtain` throws `no_session` for callers who logged in elsewhere or whose session is over, and what
 * `UpstreamTokens` throws.
 */
export function createUpstreamInjectSource(
  { spec, upstream }: Pick<ResolvedAuthOf<'upstreamInject'>, 'spec' | 'upstream'>,
  { upstreamTokens, connections, clock }: Pick<ObtainDeps, 'upstreamTokens' | 'connections' | 'clock'>,
): Source {
  if (upstream?.isConnection === true)
    return createConnectedSource({ name: 'authorization', prefix: 'Bearer ', provider: upstream.provider }, connections)
  if (upstreamTokens === undefined || upstream === undefined)
    throw new Failure('type_not_runnable', { detail: 'upstreamInject requires an embedded authorization server' })
  const provider = spec.providerName
  const given = new WeakMap<AuthenticatedCaller, Given>()
  const tokens = new WeakMap<Credential, UpstreamToken>()

  const fetch = async (caller: AuthenticatedCaller): Promise<Credential> => {
    const token = await upstreamTokens.current(caller, provider, 'access_token')
    const known = given.get(caller)
    if (known?.token.token === token.token) return known.credential
    const value = new Secret(`Bearer ${token.token.reveal()}`)
    const credential: Credential = { kind: 'header', name: 'authorization', value }
    given.set(caller, { credential, token })
    tokens.set(credential, token)
    return credential
  }

  return {
    obtain(caller) {
      if (caller.kind === 'anonymous')
        throw new Failure('config_error', { detail: 'type upstreamInject needs a caller with a token' })
      const known = given.get(caller)
      if (known !== undefined && clock.now() < known.token.freshUntilMs) return known.credential
      hasUpstreamToken(caller, upstream)
      return fetch(caller)
    },
    async reject(caller, refused) {
      const token = tokens.get(refused)
      if (token === undefined || caller.kind === 'anonymous') return false
      const forget = () => {
        if (given.get(caller)?.token.token.equals(token.token) === true) given.delete(caller)
      }
      forget()
      const isAnother = await upstreamTokens.reject(caller, provider, token)
      // A request that still held it has cached it again meanwhile.
      forget()
      return isAnother
    },
  }
}
