import { compileRequestMatcher, compileSelector, selects, variablesOf } from '../cel/index.ts'
import { Failure, type Known, NO_CLAIMS, NO_REQUEST, type Obtain } from '../core/index.ts'
import type { ResolvedCredential } from '../resources/index.ts'

/** A credential for the requests that it matches. */
export type SelectedCredential = Omit<ResolvedCredential, 'auth'> & { readonly obtain: Obtain }

/**
 * The stage `obtain` of a route with several configs: the first entry that matches the request decides, else `own`. An
 * expression that fails does not match; one that reaches its limit refuses the request. Throws `rule_limit`.
 */
export function createSelectedObtain(own: Obtain, entries: readonly SelectedCredential[]): Obtain {
  const compiled = entries.map((entry) => ({
    selector: compileSelector(entry),
    matcher: entry.when === undefined ? undefined : compileRequestMatcher(entry.when),
    obtain: entry.obtain,
  }))
  const chosen = new WeakMap<Known, Obtain>()

  const choose = ({ matched: { view, route }, caller }: Known): Obtain => {
    const mcp = view?.mcp ?? NO_REQUEST
    const claims = caller.kind === 'authenticated' ? caller.claims : NO_CLAIMS
    for (const { selector, matcher, obtain } of compiled) {
      if (!selects(selector, mcp)) continue
      const outcome = matcher?.evaluate(variablesOf({ mcp, claims, route: route.name })).outcome ?? 'matched'
      if (outcome === 'limit') throw new Failure('rule_limit', { detail: 'a condition of `credentials`' })
      if (outcome === 'matched') return obtain
    }
    return own
  }
  const of = (known: Known): Obtain => {
    const obtain = chosen.get(known) ?? choose(known)
    chosen.set(known, obtain)
    return obtain
  }

  return {
    obtain: (known) => of(known).obtain(known),
    reject: (armed) => of(armed.known).reject(armed),
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
