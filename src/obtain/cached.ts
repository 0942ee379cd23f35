import { hashKey, type CacheScope, type CacheSlot, type Generation } from '../cache/index.ts'
import {
  asFailure,
  type AuthenticatedCaller,
  type Caller,
  type Credential,
  type EpochMs,
  Failure,
  type MonotonicMs,
  type PresentedToken,
  type RequestView,
} from '../core/index.ts'
import type { ObtainDeps } from './deps.ts'
import { createGenerations } from './generations.ts'
import type { FetchingSource, Plan, RequestContext, Source } from './source.ts'

/** The parts of a config that identify cached credentials. */
export interface CachedConfig {
  readonly name: string
  readonly namespace: string
  readonly type: string
  readonly configHash: string
}

/**
 * A caller's cache slot for one config, computed once per token. It outlives the request, so it does not hold the
 * token.
 */
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

/** The slot for one request with its token; held only by calls that the request starts, until they end. */
class RequestSlot<P extends Plan> implements CacheSlot<Credential> {
  readonly #planned: PlannedSlot<P>
  readonly #token: PresentedToken
  /** Cache key. */
  readonly key: string

  constructor(planned: PlannedSlot<P>, token: PresentedToken, changing: readonly string[] | undefined) {
    this.#planned = planned
    this.#token = token
    this.key = changing === undefined ? planned.key : hashKey([planned.key, ...changing])
  }

  get scope(): CacheScope {
    return this.#planned.scope
  }

  get generation(): Generation {
    return this.#planned.generation
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

  async fetch(endsAtMs: MonotonicMs): Promise<{ value: Credential; expiresAtMs: EpochMs }> {
    const { source, caller, plan } = this.#planned
    const { credential, expiresAtMs } = await source.fetch(caller, plan, endsAtMs, this.#token())
    return { value: credential, expiresAtMs }
  }
}

/**
 * Caches a source that fetches per caller (decisions §4). A request with a cached credential costs one lookup by
 * caller object and one by key: plan and key are kept as long as the caller. `obtain` throws `config_error` for an
 * anonymous caller, and the errors of `plan` and `fetch`.
 */
export function createCachedSource<P extends Plan>(
  config: CachedConfig,
  source: FetchingSource<P>,
  { cache }: Pick<ObtainDeps, 'cache'>,
): Source {
  const scope = cache.scope(`${config.namespace}/${config.name}`, config.type)
  source.onRecovered?.(() => cache.endPauses(scope.config))
  const currentGeneration = createGenerations(scope, config.configHash, source.secrets ?? [], cache)
  // A plan and its failure are kept with what they depend on: an expensive rule is not evaluated again.
  const slots = new WeakMap<AuthenticatedCaller | RequestView, PlannedSlot<P> | Failure>()
  // A plan that depends on the request is kept with it: each has a view of its own.
  const keeperOf = (caller: AuthenticatedCaller, request?: RequestContext): AuthenticatedCaller | RequestView =>
    source.readsRequest === true && request?.view !== undefined ? request.view : caller
  const slotOf = (caller: Caller, request?: RequestContext): PlannedSlot<P> => {
    if (caller.kind === 'anonymous') {
      throw new Failure('config_error', { detail: `type ${config.type} needs a caller with a token` })
    }
    const current = currentGeneration()
    const keeper = keeperOf(caller, request)
    const known = slots.get(keeper)
    if (known instanceof Failure) throw known
    if (known !== undefined && known.generation === current) return known
    try {
      const slot = new PlannedSlot(source, caller, source.plan(caller, request), scope, current)
      slots.set(keeper, slot)
      return slot
    } catch (error) {
      const failure = asFailure(error)
      slots.set(keeper, failure)
      throw failure
    }
  }

  /** Runs `use` with the slot and its current key: at once, unless a part of the key has to be loaded. */
  const withKey = <T>(
    slot: PlannedSlot<P>,
    token: PresentedToken,
    use: (slot: RequestSlot<P>) => T | Promise<T>,
  ): T | Promise<T> => {
    const changing = source.changingParts?.(slot.caller)
    return changing instanceof Promise
      ? changing.then((parts) => use(new RequestSlot(slot, token, parts)))
      : use(new RequestSlot(slot, token, changing))
  }

  return {
    obtain: (caller, token, request) => withKey(slotOf(caller, request), token, (slot) => cache.get(slot)),
    ...(source.widen === undefined ? {} : { widen: async (caller, scopes) => widen(source, caller, scopes) }),
    lookup(caller, request) {
      const isKnown = caller.kind === 'authenticated' && slots.get(keeperOf(caller, request)) instanceof Failure
      try {
        const found = withKey(slotOf(caller, request), noToken, (slot) => cache.lookup(slot))
        if (!(found instanceof Promise)) return found
        // `obtain`, which is called next, reports the failure.
        found.catch(() => undefined)
        return { from: 'nowhere' }
      } catch {
        // `obtain`, which is called next, reports the reason.
        return { from: isKnown ? 'refusal' : 'nowhere' }
      }
    },
    reject: (caller, credential, request) =>
      withKey(slotOf(caller, request), noToken, (slot) => cache.reject(slot, credential)),
    isFreshAfterRejection(caller, request) {
      const isFresh = withKey(slotOf(caller, request), noToken, (slot) => cache.isFreshAfterRejection(slot))
      if (typeof isFresh === 'boolean') return isFresh
      isFresh.catch(() => undefined)
      return false
    },
    readsRequest: source.readsRequest === true,
    close: async () => source.close?.(),
  }
}

/** For operations of the cache that fetch nothing. */
const noToken: PresentedToken = () => {
  throw new Failure('internal_error', { detail: 'a lookup of the cache needs no token' })
}

function widen<P extends Plan>(source: FetchingSource<P>, caller: Caller, scopes: readonly string[]): Promise<Failure> {
  if (caller.kind === 'anonymous' || source.widen === undefined)
    throw new Failure('config_error', { detail: 'anonymous callers have no connection here' })
  return source.widen(caller, scopes)
}
