import { z } from 'zod'
import { goDuration, httpsUrl, parseGoDuration, type Rule, withRules } from '../fields/index.ts'
import { matcherProblem, matcherRemarks } from './aws/matcher-verdicts.ts'
import { grantBounds, shortLifetime, trustedKeys, type TrustedIssuer } from './grants-without-login.ts'
import type { Remark } from './type-record.ts'

/** Tokens of workloads live a day at most. */
const MOST_TOKEN_LIFETIME_MS = 24 * 3_600_000

const tokenLifetime: Rule = {
  message: 'expected more than 0s and 24h at most',
  at: 'maxTokenLifetime',
  holds: ({ maxTokenLifetime: text }) => {
    const ms = typeof text === 'string' ? parseGoDuration(text) : undefined
    // What is no duration is a problem of its own.
    return ms === undefined || (ms > 0 && ms <= MOST_TOKEN_LIFETIME_MS)
  },
  cel: "!has(self.maxTokenLifetime) || (duration(self.maxTokenLifetime) > duration('0s') && duration(self.maxTokenLifetime) <= duration('24h'))",
}

const usable = (match: string, context: z.core.$RefinementCtx): void => {
  const message = match === '' ? undefined : matcherProblem(match)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
}

/** `workloads` (clientauth.md §3, RFC 7523 §2.1): whose own tokens are taken of programs that no client stands behind. */
export const workloads = () =>
  z
    .array(
      withRules(
        z.strictObject({
          issuer: httpsUrl().describe('`iss` of the tokens, byte for byte; where discovery starts without `jwksUrl`.'),
          ...trustedKeys(),
          match: z.string().min(1).max(4096).superRefine(usable).describe('CEL over `claims`: whose tokens count.'),
          audiences: z
            .array(z.string().min(1).max(2048))
            .min(1)
            .max(8)
            .optional()
            .describe('What `aud` may be; this issuer and its token endpoint when absent.'),
          maxTokenLifetime: goDuration().prefault('24h').describe('From `iat` to `exp` of the tokens, 24h at most.'),
          ...grantBounds('The scopes that it may get; none when absent.'),
        }),
        [shortLifetime, tokenLifetime],
      ),
    )
    .min(1)
    .max(32)

/** One entry: an issuer may have several, of which the first that fits counts. */
export type WorkloadRule = z.output<ReturnType<typeof workloads>>[number]

/** Where the keys of its issuer are. */
export const issuerOfWorkload = ({ issuer, jwksUrl, caBundleRef, allowPrivateIP }: WorkloadRule): TrustedIssuer => ({
  issuerUrl: issuer,
  jwksUrl,
  caBundleRef,
  allowPrivateIP,
})

/** What expressions can be evaluated and hardly mean. */
export const workloadRemarks = (rules: readonly WorkloadRule[] = []): readonly Remark[] =>
  rules.flatMap(({ match }, index) =>
    matcherRemarks(match).map((message) => ({ path: ['workloads', index, 'match'], message })),
  )
