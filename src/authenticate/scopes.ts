import { type Caller, Failure, scopesOf } from '../core/index.ts'
import { shortText } from './compared.ts'

/**
 * A check that a caller has all of `required`. Throws `insufficient_scope` (403) with the scopes for the challenge
 * (RFC 6750 §3.1). Callers that passed are cached, so a warm request costs one lookup.
 */
export function createScopeCheck(required: readonly string[]): (caller: Caller) => void {
  if (required.length === 0) return () => undefined
  const passed = new WeakSet<Caller>()
  const scope = required.join(' ')
  return (caller) => {
    if (passed.has(caller)) return
    const granted = caller.kind === 'authenticated' ? scopesOf(caller) : new Set<string>()
    if (!required.every((one) => granted.has(one)))
      throw new Failure('insufficient_scope', {
        challenge: { error: 'insufficient_scope', scope },
        compared: { came: { scope: shortText([...granted].filter(Boolean).join(' ')) }, wanted: { scope } },
      })
    passed.add(caller)
  }
}
