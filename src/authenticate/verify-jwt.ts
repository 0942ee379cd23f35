import { asFailure, type Clock, type RuleCode } from '../core/index.ts'
import { accept } from './accept.ts'
import { type BrokenRule, brokenRule, isAboutAudience } from './claim-rules.ts'
import {
  ALGORITHMS,
  lookAtSignature,
  SIGNATURE_RULES,
  type SignatureHeader,
  type SignatureLook,
  type UnverifiedJwt,
  verifySignature,
} from '../oauth/index.ts'
import type { Provider } from './provider.ts'
import { firstAccepted, refused, type Refused, refusedByRule, type Verdict } from './verdict.ts'
import { introspectAt } from './verify-opaque.ts'

/** A JWT at one provider. */
interface Case {
  readonly token: string
  readonly peer: string | undefined
  readonly jwt: UnverifiedJwt
  readonly header: SignatureHeader
  readonly provider: Provider
}

/**
 * The verdict on a JWT (decisions §2.3). `iss`, unverified, picks the providers; a wrong header, `exp`, `nbf`, `aud` or
 * `iss` is final and costs no key, so that it is known without waiting; then the signature.
 */
export function createVerifyJwt(providers: readonly Provider[], clock: Clock) {
  const byIssuer = Map.groupBy(providers, (provider) => provider.issuer)

  return (token: string, jwt: UnverifiedJwt, peer: string | undefined): Verdict | Promise<Verdict> => {
    const header = readHeader(jwt)
    if (typeof header === 'string') return refused(header)
    const { iss } = jwt.payload
    const issuers = typeof iss === 'string' ? byIssuer.get(iss) : undefined
    if (issuers === undefined) return refused('iss_unknown')

    const nowMs = clock.now()
    const rules = issuers.map((provider) => brokenRule(jwt.payload, provider.jwtRules, nowMs))
    const cases = issuers
      .filter((_, at) => rules[at] === undefined)
      .map((provider) => ({ token, peer, jwt, header, provider }))
    if (cases.length === 0) return refusedByRules(rules, jwt, issuers)
    return verifyCases(cases, clock)
  }
}

/** The first provider with available keys that verifies the token wins; otherwise each is asked. */
async function verifyCases(cases: readonly Case[], clock: Clock): Promise<Verdict> {
  const looks: (SignatureLook | undefined)[] = []
  for (const one of cases) {
    const keys = one.provider.keys.ready()
    const first = keys === undefined ? undefined : await lookAtSignature(one.token, one.header, keys)
    if (first?.check === 'good') return acceptCase(one, clock)
    looks.push(first)
  }
  return firstAccepted(cases.map((one, at) => verifyAt(one, looks[at], clock)))
}

/** Among providers with one issuer, the one whose audience matches reports the real defect. */
function refusedByRules(
  rules: readonly (BrokenRule | undefined)[],
  jwt: UnverifiedJwt,
  issuers: readonly Provider[],
): Refused {
  const broken = rules.filter((rule) => rule !== undefined)
  const rule = broken.find((one) => !isAboutAudience(one)) ?? broken[0] ?? 'aud_missing'
  const refusal = refusedByRule(rule)
  if (rule !== 'nbf_early' && rule !== 'iat_early') return refusal
  // A token that becomes valid soon is rejected only until then.
  const { nbf, iat } = jwt.payload
  const begins = Math.max(...[nbf, iat].filter((at) => typeof at === 'number'))
  const early = Math.max(...issuers.map(({ jwtRules }) => jwtRules.tolerance.earlySeconds))
  return { ...refusal, changesAtMs: (begins - early) * 1000 }
}

/** The signature is valid. Waiting took time, so the claims are checked again. */
function acceptCase({ token, jwt, provider }: Case, clock: Clock): Verdict {
  const nowMs = clock.now()
  const rule = brokenRule(jwt.payload, provider.jwtRules, nowMs)
  if (rule !== undefined) return refusedByRule(rule)
  const claims = jwt.payload
  return accept({ provider, token, format: 'jwt', claims, isIntrospected: false, bytes: token.length }, nowMs)
}

/**
 * Verifies the signature with one refresh for an unknown key, then introspects if configured. `first` is the result
 * with the available keys, if any.
 */
async function verifyAt(one: Case, first: SignatureLook | undefined, clock: Clock): Promise<Verdict> {
  const verdict = await verdictOn(one, first, clock)
  const { introspect } = one.provider
  if (verdict.kind === 'accepted' || introspect === undefined) return verdict
  // Waiting took time: a token that expired meanwhile is neither introspected nor accepted.
  const ended = brokenNow(one, clock)
  if (ended !== undefined) return ended
  const { exp } = one.jwt.payload
  const { token, peer } = one
  const subject = { token, peer, format: 'jwt', ...(typeof exp === 'number' ? { notAfter: exp } : {}) } as const
  const answer = await introspectAt(one.provider, introspect, subject, clock)
  return answer.kind === 'accepted' ? (brokenNow(one, clock) ?? answer) : answer
}

function brokenNow({ jwt, provider }: Case, clock: Clock): Refused | undefined {
  const rule = brokenRule(jwt.payload, provider.jwtRules, clock.now())
  return rule === undefined ? undefined : refusedByRule(rule)
}

async function verdictOn(one: Case, first: SignatureLook | undefined, clock: Clock): Promise<Verdict> {
  try {
    const check = await verifySignature(one.token, one.header, one.provider.keys, first)
    return check === 'good' ? acceptCase(one, clock) : refused(SIGNATURE_RULES[check])
  } catch (error) {
    return { kind: 'undecided', failure: asFailure(error) }
  }
}

/**
 * `typ` values that say what a token is (RFC 8725 §3.11): every profile of JWT but the one of access tokens, and JOSE, which
 * is no JWT. A logout, DPoP or event token of the same issuer opens nothing.
 */
const OTHER_KIND = /^(?!(?:application\/)?at\+jwt$)(?:.*\+jwt|(?:application\/)?jose(?:\+json)?)$/i

/** Reads `alg` and `kid`; a rule names the fault. No extension is understood, so any `crit` is (RFC 7515 §4.1.11). */
function readHeader(jwt: UnverifiedJwt): SignatureHeader | RuleCode {
  const { alg, kid, crit, typ } = jwt.header
  if (typ !== undefined && (typeof typ !== 'string' || OTHER_KIND.test(typ))) return 'typ_other'
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) return 'alg_refused'
  if (crit !== undefined) return 'crit_unknown'
  if (kid !== undefined && typeof kid !== 'string') return 'kid_malformed'
  return { alg, kid }
}
