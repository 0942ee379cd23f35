import { asFailure, type AuthenticatedCaller, type Failure } from '../core/index.ts'
import { clientAuthOf, type ResolvedAuth, xaaEndpoints } from '../resources/index.ts'
import { checkIdTokenClaims } from './id-jag.ts'
import { refuseApplication } from './obo.ts'
import { hasUpstreamToken } from './subject-token-source.ts'

type ToldCaller = Pick<AuthenticatedCaller, 'claims' | 'issuer' | 'subject' | 'format'>

/** Throws for a caller's token that the type can't use. */
function checkOwnToken(auth: ResolvedAuth, caller: ToldCaller): void {
  if (auth.type === 'obo') refuseApplication(caller.claims)
  if (auth.type === 'xaa') checkIdTokenClaims(caller, clientAuthOf(xaaEndpoints(auth.spec).idp)?.clientId)
}

/** Why this caller gets no credential, judging by claims; undefined: a request is made. */
export function refusedByToken(auth: ResolvedAuth, caller: ToldCaller): Failure | undefined {
  try {
    const upstream = 'upstream' in auth ? auth.upstream : undefined
    if (upstream === undefined || !hasUpstreamToken(caller, upstream)) checkOwnToken(auth, caller)
    return undefined
  } catch (error) {
    return asFailure(error)
  }
}
