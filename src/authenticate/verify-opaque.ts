import { asFailure, type Clock } from '../core/index.ts'
import { accept } from './accept.ts'
import { brokenRule } from './claim-rules.ts'
import type { Introspect } from './introspector.ts'
import type { Provider } from './provider.ts'
import { combine, firstAccepted, refused, refusedByRule, type Verdict } from './verdict.ts'

/** What is to be introspected. */
export interface Introspectable {
  readonly token: string
  /** Address that the token came from. */
  readonly peer: string | undefined
  readonly format: 'jwt' | 'opaque'
  /** `exp` of a JWT, which ends it whatever the provider says. Seconds since the epoch. */
  readonly notAfter?: number
}

/** Asks one provider and holds its answer to the claim rules. */
export async function introspectAt(
  provider: Provider,
  introspect: Introspect,
  subject: Introspectable,
  clock: Clock,
): Promise<Verdict> {
  const { familiar } = provider
  try {
    const by = familiar.asking(subject.token, subject.peer)
    const answer = await introspect(subject.token, by)
    // Until it turns out to be good again.
    familiar.forget(by)
    if (!answer.isActive) return refused('token_inactive')
    const { claims, bytes } = answer
    const nowMs = clock.now()
    const rule = brokenRule(claims, provider.introspectionRules, nowMs)
    if (rule !== undefined) return refusedByRule(rule)
    const accepted = accept({ ...subject, provider, claims, bytes, isIntrospected: true }, nowMs)
    familiar.note(accepted.caller)
    return accepted
  } catch (error) {
    return { kind: 'undecided', failure: asFailure(error) }
  }
}

/** The verdict on a token of unknown make: every provider that introspects is asked at once (decisions §2.3). */
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
