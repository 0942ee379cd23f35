import { asFailure, type AuthenticatedCaller, type Failure } from '../core/index.ts'
import { clientAuthOf, type ResolvedAuth, xaaEndpoints } from '../resources/index.ts'
import { checkIdTokenClaims } from './id-jag.ts'
import { refuseApplication } from './obo.ts'
import { hasUpstreamToken } from './token-to-show.ts'

type ToldCaller = Pick<AuthenticatedCaller, 'claims' | 'issuer' | 'subject' | 'format'>

/** Throws where the caller's own token is none that the type shows. */
function checkOwnToken(auth: ResolvedAuth, caller: ToldCaller): void {
  if (auth.type === 'obo') refuseApplication(caller.claims)
  if (auth.type === 'xaa') checkIdTokenClaims(caller, clientAuthOf(xaaEndpoints(auth.spec).idp)?.clientId)
}

/** Why nobody is asked for a credential of this caller, as far as claims tell; undefined: somebody is asked. */
export function refusedByToken(auth: ResolvedAuth, caller: ToldCaller): Failure | undefined {
  try {
    const upstream = 'upstream' in auth ? auth.upstream : undefined
    if (upstream === undefined || !hasUpstreamToken(caller, upstream)) checkOwnToken(auth, caller)
    return undefined
  } catch (error) {
    return asFailure(error)
  }
}
