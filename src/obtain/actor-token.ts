import type { Credential, Secret, SecretHandle } from '../core/index.ts'
import { type ResolvedAuthOf, tokenTypeUrn } from '../resources/index.ts'
import { createCachedOwnSource } from './cached-own.ts'
import { createOwnTokenSource } from './client-credentials.ts'
import type { ObtainDeps } from './deps.ts'
import { TOKEN_DEADLINE_MS } from './token-client.ts'
import { OWN_TOKEN_ENDPOINT } from './token-exchange-response.ts'

type ActorAuth = Pick<ResolvedAuthOf<'tokenExchange'>, 'name' | 'namespace' | 'type' | 'configHash' | 'spec'>

/** The form parameter of the token, which is never sent in a header. */
const ACTOR_TOKEN = 'actor_token'

/**
 * An exchange does not say which of two tokens it rejects: callers' tokens must not cause continuous refetching of
 * the actor token.
 */
const EXCHANGES = 'exchanges'

function valueOf(credential: Credential): Secret {
  if (credential.kind !== 'header') throw new TypeError('an actor token must be a header credential')
  return credential.value
}

/** The actor of a config's exchanges (RFC 8693 §2.1), with a token of the proxy itself. */
export interface Actor {
  /** The token, the same for all callers. Throws and logs as `createOwnTokenSource`. */
  token(): Promise<Secret>
  /**
   * A replacement for the sent token, in case that one was rejected: the current one, or a new one if the sent one is
   * older than a minute. Undefined without one. Rejects with the errors of `token`.
   */
  another(shown: Secret): Promise<Secret | undefined>
  /** The URN of its type. */
  readonly type: string
  /** Secrets of the exchange and of this client: a change of either invalidates cached tokens. */
  readonly secrets: readonly SecretHandle[]
  /** Milliseconds it may take in addition to the exchange. */
  readonly deadlineMs: number
  close(): Promise<void>
}

/**
 * Creates the actor with a token by client credentials (decisions §3.4), cached with the exchanged tokens: one fetch
 * for all callers, refreshed ahead of expiry. `exchanging` are the secrets of the exchange. Undefined when the config
 * has no such actor.
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
