import { compileRequestMatcher, compileSelector, selects, variablesOf } from '../cel/index.ts'
import {
  type Claims,
  Failure,
  type Known,
  type McpView,
  type Metrics,
  NO_CLAIMS,
  NO_REQUEST,
  type Obtain,
} from '../core/index.ts'
import type { ResolvedCredential } from '../resources/index.ts'

/** A credential for the requests that it matches. */
export type SelectedCredential = Omit<ResolvedCredential, 'auth'> & { readonly obtain: Obtain }

/** Finds the first entry that matches a request. Throws `rule_limit`. */
export type Selection<Entry> = (request: {
  readonly mcp: McpView
  readonly claims: Claims
  readonly route: string
}) => Entry | undefined

/**
 * Compiles the entries of `routes[].credentials`. An expression that fails does not match; one that reaches its limit
 * refuses the request. `onFailure` is called with the index of such an entry.
 */
export function compileSelection<Entry extends Omit<ResolvedCredential, 'auth'>>(
  entries: readonly Entry[],
  onFailure: (index: number, outcome: 'error' | 'limit') => void = () => undefined,
): Selection<Entry> {
  const compiled = entries.map((entry, index) => ({
    entry,
    index,
    selector: compileSelector(entry),
    matcher: entry.when === undefined ? undefined : compileRequestMatcher(entry.when),
  }))
  return (request) => {
    for (const { entry, index, selector, matcher } of compiled) {
      if (!selects(selector, request.mcp)) continue
      const outcome = matcher?.evaluate(variablesOf(request)).outcome ?? 'matched'
      if (outcome === 'error' || outcome === 'limit') onFailure(index, outcome)
      if (outcome === 'limit') throw new Failure('rule_limit', { detail: 'a condition of `credentials`' })
      if (outcome === 'matched') return entry
    }
    return undefined
  }
}

/**
 * The stage `obtain` of a route with several configs: the first entry that matches the request decides, else `own`. Throws
 * `rule_limit`.
 */
export function createSelectedObtain(
  own: Obtain,
  entries: readonly SelectedCredential[],
  { route: routeName, metrics }: { readonly route: string; readonly metrics: Metrics },
): Obtain {
  const failures = metrics.counter(
    'extauth_credential_conditions_total',
    'Conditions of `routes[].credentials`, by index of the entry, that could not be evaluated: error (the entry does not match), limit (the request is refused).',
    ['route', 'entry', 'outcome'],
  )
  const select = compileSelection(entries, (index, outcome) => failures.with(routeName, String(index), outcome).add())
  /** Only where conditions are evaluated: then once per request, because failures are counted. */
  const chosen = entries.some(({ when }) => when !== undefined) ? new WeakMap<Known, Obtain>() : undefined

  const choose = ({ matched: { view, route }, caller }: Known): Obtain => {
    const claims = caller.kind === 'authenticated' ? caller.claims : NO_CLAIMS
    return select({ mcp: view?.mcp ?? NO_REQUEST, claims, route: route.name })?.obtain ?? own
  }
  const of = (known: Known): Obtain => {
    const obtain = chosen?.get(known) ?? choose(known)
    chosen?.set(known, obtain)
    return obtain
  }

  return {
    obtain: (known) => of(known).obtain(known),
    reject: (armed) => of(armed.known).reject(armed),
    rejectedAgain: async (armed) => of(armed.known).rejectedAgain?.(armed),
    canWiden: (known) => of(known).canWiden?.(known) === true,
    widen: (armed, scopes) => of(armed.known).widen?.(armed, scopes),
    isFreshAfterRejection: (armed) => of(armed.known).isFreshAfterRejection?.(armed) === true,
    lookup(known) {
      try {
        return of(known).lookup(known)
      } catch {
        // Why there is none is reported by `obtain`, which is asked next.
        return { from: 'nowhere' }
      }
    },
    whenRejected: (known) => of(known).whenRejected?.(known),
  }
}
