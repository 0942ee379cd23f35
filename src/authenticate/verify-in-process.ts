import {
  type AuthenticatedCaller,
  type Claims,
  type Clock,
  Failure,
  type InProcessIssuer,
  type IssuerKey,
} from '../core/index.ts'
import { accept } from './accept.ts'
import { brokenRule, type ClaimRules, isAboutAudience } from './claim-rules.ts'
import type { ClockTolerance, UnverifiedJwt } from '../oauth/index.ts'
import { refused, refusedByRule, type Refused, type Verdict } from './verdict.ts'

/** Verifies tokens of an in-process issuer, for one audience. */
export interface InProcessProvider {
  readonly issuer: InProcessIssuer
  /** The required `aud`: the resource URL of the route. */
  readonly audience: string
}

/** The provider's name in logs. */
const NAME = 'embedded'
/** `typ` of access tokens (RFC 9068 §2.1); RFC 7515 §4.1.9: case-insensitive, with or without prefix. */
const ACCESS_TOKEN = /^(?:application\/)?at\+jwt$/i

/** Verifies tokens of in-process issuers, without HTTP (authserver.md §2.6). */
export interface VerifyInProcess {
  /** The verdict on a token with one of these issuers; undefined for any other. */
  verify(token: string, jwt: UnverifiedJwt): Promise<Verdict> | Refused | undefined
  /** Whether the session of a caller was revoked, as far as this process knows. */
  isRevoked(caller: AuthenticatedCaller): boolean
  /** Call on each use of a cached caller. Throws `invalid_token` after its session was revoked. */
  checkRevoked(caller: AuthenticatedCaller): void
}

const keyFor = (keys: readonly IssuerKey[], { alg, kid }: UnverifiedJwt['header']): IssuerKey | undefined =>
  keys.find((key) => key.kid === kid && key.alg === alg)

const isSignedBy = async (token: string, { alg, publicKey }: IssuerKey): Promise<boolean> => {
  const { compactVerify, errors } = await import('jose')
  try {
    await compactVerify(token, publicKey, { algorithms: [alg] })
    return true
  } catch (error) {
    if (error instanceof errors.JOSEError) return false
    throw error
  }
}

/**
 * Access tokens of these issuers are verified with their own keys: `typ` at+jwt, `alg` and `kid` of one of them, then the
 * claims as for any JWT. Of several entries with one issuer each adds an audience.
 */
export function createVerifyInProcess(
  providers: readonly InProcessProvider[],
  { tolerance, clock }: { readonly tolerance: ClockTolerance; readonly clock: Clock },
): VerifyInProcess {
  const byIssuer = Map.groupBy(providers, ({ issuer }) => issuer.issuer)

  const rulesOf = ({ issuer, audience }: InProcessProvider): ClaimRules => ({
    issuer: issuer.issuer,
    audience,
    audienceClaim: 'aud',
    tolerance,
    isIntrospected: false,
    requireAudience: true,
  })

  const isRevoked = (issuer: string, claims: Claims): boolean =>
    byIssuer.get(issuer)?.[0]?.issuer.isRevoked(claims) === true

  /**
   * The entry whose rules the claims meet, or the failure; with several, a rule other than the audience is more
   * informative.
   */
  const entryFor = (claims: Claims, entries: readonly InProcessProvider[]): ClaimRules | Refused => {
    let refusal: Refused | undefined
    for (const rules of entries.map(rulesOf)) {
      const rule = brokenRule(claims, rules, clock.now())
      if (rule === undefined) return rules
      if (refusal === undefined || !isAboutAudience(rule)) refusal = refusedByRule(rule)
    }
    return refusal ?? refused('iss_unknown')
  }

  const verifyWith = async (token: string, { header, payload }: UnverifiedJwt, rules: ClaimRules): Promise<Verdict> => {
    const key = keyFor(byIssuer.get(rules.issuer)?.[0]?.issuer.keys() ?? [], header)
    if (key === undefined || !(await isSignedBy(token, key))) return refused('own_signature_wrong')
    if (isRevoked(rules.issuer, payload)) return refused('session_revoked')
    if ((await byIssuer.get(rules.issuer)?.[0]?.issuer.hasSession(payload)) === false) return refused('session_unknown')
    const provider = { name: NAME, issuer: rules.issuer, jwtRules: rules }
    const evidence = {
      provider,
      token,
      format: 'jwt',
      claims: payload,
      isIntrospected: false,
      bytes: token.length,
    } as const
    return accept(evidence, clock.now())
  }

  return {
    verify(token, jwt) {
      const { iss } = jwt.payload
      const entries = typeof iss === 'string' ? byIssuer.get(iss) : undefined
      if (entries === undefined) return undefined
      const { typ, crit } = jwt.header
      if (typeof typ !== 'string' || !ACCESS_TOKEN.test(typ)) return refused('typ_not_at_jwt')
      if (crit !== undefined) return refused('crit_unknown')
      const rules = entryFor(jwt.payload, entries)
      return 'kind' in rules ? rules : verifyWith(token, jwt, rules)
    },
    isRevoked: ({ issuer, claims }) => isRevoked(issuer, claims),
    checkRevoked({ issuer, claims }) {
      if (isRevoked(issuer, claims))
        throw new Failure('invalid_token', { rule: 'session_revoked', challenge: { error: 'invalid_token' } })
    },
  }
}
