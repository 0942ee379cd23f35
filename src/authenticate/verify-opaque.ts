import { asFailure, type Clock } from '../core/index.ts'
import { accept } from './accept.ts'
import { brokenRule } from './claim-rules.ts'
import type { Introspect } from './introspector.ts'
import type { Provider } from './provider.ts'
import { combine, firstAccepted, refused, refusedByRule, type Verdict } from './verdict.ts'

/** A token to introspect. */
export interface Introspectable {
  readonly token: string
  /** Client address. */
  readonly peer: string | undefined
  readonly format: 'jwt' | 'opaque'
  /** `exp` of a JWT, which applies regardless of the provider. Seconds since the epoch. */
  readonly notAfter?: number
}

/** Introspects at one provider and applies the claim rules. */
export async function introspectAt(
  provider: Provider,
  introspect: Introspect,
  subject: Introspectable,
  clock: Clock,
): Promise<Verdict> {
  const { recentTokens } = provider
  try {
    const by = recentTokens.attribution(subject.token, subject.peer)
    const answer = await introspect(subject.token, by)
    // Until it is found valid again.
    recentTokens.forget(by)
    if (!answer.isActive) return refused('token_inactive')
    const { claims, bytes } = answer
    const nowMs = clock.now()
    const rule = brokenRule(claims, provider.introspectionRules, nowMs)
    if (rule !== undefined) return refusedByRule(rule)
    const accepted = accept({ ...subject, provider, claims, bytes, isIntrospected: true }, nowMs)
    recentTokens.note(accepted.caller)
    return accepted
  } catch (error) {
    return { kind: 'undecided', failure: asFailure(error) }
  }
}

/** The verdict on an opaque token: all providers with introspection are asked at once (decisions §2.3). */
export function createVerifyOpaque(providers: readonly Provider[], clock: Clock) {
  const introspecting = providers.flatMap((provider) =>
    provider.introspect === undefined ? [] : [{ provider, introspect: provider.introspect }],
  )
  return (token: string, peer: string | undefined): Verdict | Promise<Verdict> => {
    if (introspecting.length === 0) return combine([])
    return firstAccepted(
      introspecting.map(({ provider, introspect }) =>
        introspectAt(provider, introspect, { token, peer, format: 'opaque' }, clock),
      ),
    )
  }
}
