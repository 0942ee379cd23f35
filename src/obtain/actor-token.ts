import type { Credential, Secret, SecretHandle } from '../core/index.ts'
import { type ResolvedAuthOf, tokenTypeUrn } from '../resources/index.ts'
import { createCachedOwnSource } from './cached-own.ts'
import { createOwnTokenSource } from './client-credentials.ts'
import type { ObtainDeps } from './deps.ts'
import { TOKEN_DEADLINE_MS } from './token-client.ts'
import { OWN_TOKEN_ENDPOINT } from './token-exchange-response.ts'

type ActorAuth = Pick<ResolvedAuthOf<'tokenExchange'>, 'name' | 'namespace' | 'type' | 'configHash' | 'spec'>

/** The parameter of the form that the token goes into; never a header. */
const ACTOR_TOKEN = 'actor_token'

/** An exchange does not say which of two tokens it refuses: what callers show must not have this one fetched all the time. */
const EXCHANGES = 'exchanges'

function valueOf(credential: Credential): Secret {
  if (credential.kind !== 'header') throw new TypeError('an actor token is kept as a header')
  return credential.value
}

/** Who acts on behalf of the callers of a config (RFC 8693 §2.1), with a token that the proxy gets for itself. */
export interface Actor {
  /** The token, the same for all callers. Throws what `createOwnTokenSource` throws; who fetched has logged it. */
  token(): Promise<Secret>
  /**
   * Another token than the one that was shown, which may be what was refused: what has replaced it, or a new one instead of one
   * that is older than a minute. Undefined where there is none. Rejects with what `token` throws.
   */
  another(shown: Secret): Promise<Secret | undefined>
  /** The URN of its type. */
  readonly type: string
  /** Those of the exchange and of this client: a change of one retires what was got with any. */
  readonly secrets: readonly SecretHandle[]
  /** Milliseconds that it may take, beside the exchange. */
  readonly deadlineMs: number
  close(): Promise<void>
}

/**
 * The actor that gets its token by the client credentials grant (decisions §3.4), kept in the one cache beside the exchanged
 * tokens: one call for all callers, a new token ahead of its end. `exchanging` are the secrets of the exchange. Undefined where the
 * config has no such actor.
 */
export function createActor(auth: ActorAuth, exchanging: readonly SecretHandle[], deps: ObtainDeps): Actor | undefined {
  if (auth.spec.actor === undefined) return undefined
  const use = {
    name: auth.name,
    what: 'actor token request',
    service: { ...OWN_TOKEN_ENDPOINT, what: 'actor token endpoint' },
    credential: (value: Secret) => ({ kind: 'header', name: ACTOR_TOKEN, value }) as const,
  }
  const own = createOwnTokenSource(auth.spec.actor.clientCredentials, use, deps)
  const secrets = [...exchanging, ...(own.secrets ?? [])]
  const source = createCachedOwnSource(auth, { ...own, secrets }, deps)
  return {
    token: async () => valueOf(await source.obtain()),
    async another(shown) {
      const next = await source.another(EXCHANGES, use.credential(shown))
      return next && valueOf(next)
    },
    type: tokenTypeUrn('access_token'),
    secrets,
    deadlineMs: TOKEN_DEADLINE_MS,
    close: async () => source.close?.(),
  }
}
