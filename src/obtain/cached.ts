import { hashKey, type CacheScope, type CacheSlot, type Generation } from '../cache/index.ts'
import {
  asFailure,
  Failure,
  type AuthenticatedCaller,
  type Caller,
  type Credential,
  type PresentedToken,
} from '../core/index.ts'
import type { ObtainDeps } from './deps.ts'
import { createGenerations } from './generations.ts'
import type { FetchingSource, Plan, Source } from './source.ts'

/** What of a config decides what is fetched with it. */
export interface CachedConfig {
  readonly name: string
  readonly namespace: string
  readonly type: string
  readonly configHash: string
}

/** What one caller wants from one config, worked out once per token, which is not in it: it is kept beyond the request. */
class PlannedSlot<P extends Plan> {
  readonly source: FetchingSource<P>
  readonly caller: AuthenticatedCaller
  readonly plan: P
  readonly scope: CacheScope
  readonly generation: Generation
  readonly key: string

  constructor(
    source: FetchingSource<P>,
    caller: AuthenticatedCaller,
    plan: P,
    scope: CacheScope,
    generation: Generation,
  ) {
    this.source = source
    this.caller = caller
    this.plan = plan
    this.scope = scope
    this.generation = generation
    const { configHash, secrets } = generation
    this.key = hashKey([scope.config, configHash, secrets, caller.issuer, caller.identity, ...plan.keyParts])
  }
}

/** The same for one request with its token: nobody keeps it but a call that the request begins, until that has ended. */
class RequestSlot<P extends Plan> implements CacheSlot<Credential> {
  readonly #planned: PlannedSlot<P>
  readonly #token: PresentedToken

  constructor(planned: PlannedSlot<P>, token: PresentedToken) {
    this.#planned = planned
    this.#token = token
  }

  get scope(): CacheScope {
    return this.#planned.scope
  }

  get generation(): Generation {
    return this.#planned.generation
  }

  get key(): string {
    return this.#planned.key
  }

  get issuer(): string {
    return this.#planned.caller.issuer
  }

  get subject(): string {
    return this.#planned.caller.subject
  }

  get ownerId(): string {
    return this.#planned.caller.identity
  }

  get role(): string | undefined {
    return this.#planned.plan.role
  }

  get isKeyedByToken(): boolean {
    return this.#planned.source.isKeyedByToken === true
  }

  get notAfterMs(): number | undefined {
    return this.#planned.plan.notAfterMs
  }

  get tokenDigest(): string {
    return this.#planned.caller.tokenDigest
  }

  get deadlineMs(): number {
    return this.#planned.source.deadlineMs
  }

  async fetch(endsAtMs: number): Promise<{ value: Credential; expiresAtMs: number }> {
    const { source, caller, plan } = this.#planned
    const { credential, expiresAtMs } = await source.fetch(caller, plan, endsAtMs, this.#token())
    return { value: credential, expiresAtMs }
  }
}

/**
 * Puts the one cache (decisions §4) before a source that fetches for each caller. A request with a live credential costs a look-up by
 * caller object and one by key: plan and key are kept per caller for as long as the authenticator keeps the caller.
 * `obtain` throws `config_error` for an anonymous caller, and what `plan` and `fetch` throw.
 */
export function createCachedSource<P extends Plan>(
  config: CachedConfig,
  source: FetchingSource<P>,
  { cache }: Pick<ObtainDeps, 'cache'>,
): Source {
  const scope = cache.scope(`${config.namespace}/${config.name}`, config.type)
  source.onRecovered?.(() => cache.endPauses(scope.config))
  const currentGeneration = createGenerations(scope, config.configHash, source.secrets ?? [], cache)
  // A plan is the same for the same token, so a refusal is too: a rule that costs much is not evaluated again.
  const slots = new WeakMap<AuthenticatedCaller, PlannedSlot<P> | Failure>()
  const slotOf = (caller: Caller): PlannedSlot<P> => {
    if (caller.kind === 'anonymous') {
      throw new Failure('config_error', { detail: `type ${config.type} needs a caller with a token` })
    }
    const current = currentGeneration()
    const known = slots.get(caller)
    if (known instanceof Failure) throw known
    if (known !== undefined && known.generation === current) return known
    try {
      const slot = new PlannedSlot(source, caller, source.plan(caller), scope, current)
      slots.set(caller, slot)
      return slot
    } catch (error) {
      const failure = asFailure(error)
      slots.set(caller, failure)
      throw failure
    }
  }

  return {
    obtain: (caller, token) => cache.get(new RequestSlot(slotOf(caller), token)),
    lookup(caller) {
      const isKnown = caller.kind === 'authenticated' && slots.get(caller) instanceof Failure
      try {
        return cache.lookup(slotOf(caller))
      } catch {
        // Why not is said by `obtain`, which is asked next.
        return { from: isKnown ? 'refusal' : 'nowhere' }
      }
    },
    reject: (caller, credential) => cache.reject(slotOf(caller), credential),
    isFreshAfterRejection: (caller) => cache.isFreshAfterRejection(slotOf(caller)),
    close: async () => source.close?.(),
  }
}
