import { type ClaimValue, type Compared, Failure, printable } from '../core/index.ts'
import type { Provider } from './provider.ts'
import { ALGORITHMS, type UnverifiedJwt } from '../oauth/index.ts'
import type { Verdict } from './verdict.ts'

const MAX_TEXT = 200

/** External text, shortened and escaped for display. */
export const shortText = (text: string): string => {
  const shown = printable(text)
  return shown.length > MAX_TEXT ? `${shown.slice(0, MAX_TEXT)}…` : shown
}

/** Adds actual and expected values to a rejection. They identify no person. */
export function withCompared(verdict: Verdict, jwt: UnverifiedJwt, providers: readonly Provider[]): Verdict {
  if (verdict.kind === 'accepted') return verdict
  const { code, detail, rule, cause, challenge, retryAfterSeconds } = verdict.failure
  const failure = new Failure(code, {
    ...(detail === undefined ? {} : { detail }),
    ...(challenge === undefined ? {} : { challenge }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    cause,
    rule,
    compared: compare(jwt, providers),
  })
  return { ...verdict, failure }
}

function compare({ header, payload }: UnverifiedJwt, providers: readonly Provider[]): Compared {
  const own = providers.filter(({ issuer }) => issuer === payload['iss'])
  const meant = own.length === 0 ? providers : own
  const audienceClaims = [...new Set(meant.map(({ jwtRules }) => jwtRules.audienceClaim))]
  const { exp, nbf, iat } = payload
  const { alg, kid, typ } = header
  const came: Readonly<Record<string, ClaimValue | undefined>> = {
    iss: payload['iss'],
    ...Object.fromEntries(audienceClaims.map((claim) => [claim, payload[claim]])),
    exp: timeOf(exp),
    nbf: timeOf(nbf),
    iat: timeOf(iat),
    alg,
    kid,
    typ,
  }
  const each = (texts: readonly string[]): string => shortText([...new Set(texts)].join(', '))
  const audiencesIn = (claim: string) =>
    meant.flatMap(({ jwtRules }) => (jwtRules.audienceClaim === claim ? [jwtRules.audience] : []))
  return {
    came: Object.fromEntries(
      Object.entries(came).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, shortText(typeof value === 'string' ? value : JSON.stringify(value))]],
      ),
    ),
    wanted: {
      iss: each(meant.map(({ issuer }) => issuer)),
      ...Object.fromEntries(audienceClaims.map((claim) => [claim, each(audiencesIn(claim))])),
      alg: each([...ALGORITHMS]),
    },
  }
}

/** Seconds since the epoch in readable form. */
const timeOf = (value: ClaimValue | undefined): ClaimValue | undefined =>
  typeof value === 'number' && Math.abs(value) < 8.64e12 ? new Date(value * 1000).toISOString() : value
