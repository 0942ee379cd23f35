import { Failure, Secret, type Caller, type Credential, type UpstreamToken } from '../core/index.ts'
import type { ResolvedAuthOf } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import type { Source } from './source.ts'

/**
 * Type `upstreamInject` (decisions §3.6): the access token that the embedded authorization server holds for the caller's
 * session at one upstream provider, as `Authorization: Bearer`. The server keeps and refreshes it, so nothing is cached
 * here. Throws `type_not_runnable` without such a server; `obtain` throws `no_session` for callers who logged in elsewhere
 * or whose session is over.
 */
export function createUpstreamInjectSource(
  { spec, upstream }: Pick<ResolvedAuthOf<'upstreamInject'>, 'spec' | 'upstream'>,
  { upstreamTokens }: Pick<ObtainDeps, 'upstreamTokens'>,
): Source {
  if (upstreamTokens === undefined)
    throw new Failure('type_not_runnable', { detail: 'upstreamInject needs an embedded authorization server' })
  const provider = spec.providerName
  const tokens = new WeakMap<Credential, UpstreamToken>()
  const credentials = new WeakMap<UpstreamToken, Credential>()

  return {
    async obtain(caller: Caller) {
      if (caller.kind === 'anonymous' || caller.issuer !== upstream?.issuer)
        throw new Failure('no_session', {
          detail: 'the caller did not log in at the authorization server of this route',
        })
      const token = await upstreamTokens.current(caller, provider, 'access_token')
      const known = credentials.get(token)
      if (known !== undefined) return known
      const credential: Credential = {
        kind: 'header',
        name: 'authorization',
        value: new Secret(`Bearer ${token.token.reveal()}`),
      }
      credentials.set(token, credential)
      tokens.set(credential, token)
      return credential
    },
    async reject(caller, refused) {
      const token = tokens.get(refused)
      return token !== undefined && caller.kind !== 'anonymous' && upstreamTokens.reject(caller, provider, token)
    },
  }
}
