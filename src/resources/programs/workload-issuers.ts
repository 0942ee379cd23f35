import { z } from 'zod'
import { goDuration, httpsUrl, withRules } from '../../fields/index.ts'
import { matcherProblem, matcherRemarks } from '../aws/matcher-verdicts.ts'
import { grantBounds, shortLifetime, trustedKeys } from './grants-without-login.ts'
import type { Remark } from '../type-record.ts'
import { tokenLifetime } from './workload-rules.ts'

const usable = (match: string, context: z.core.$RefinementCtx): void => {
  const message = match === '' ? undefined : matcherProblem(match)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
}

/** `workloads` (clientauth.md §3, RFC 7523 §2.1): issuers whose tokens are accepted from workloads without a client. */
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
          singleUse: z.boolean().default(false).describe('A token counts once, by its `jti` or itself.'),
          ...grantBounds('The scopes that it may get; none when absent.'),
        }),
        [shortLifetime, tokenLifetime('maxTokenLifetime')],
      ),
    )
    .min(1)
    .max(32)

type WorkloadRule = z.output<ReturnType<typeof workloads>>[number]

/** Warnings for valid expressions that are probably mistakes. */
export const workloadRemarks = (rules: readonly WorkloadRule[] = []): readonly Remark[] =>
  rules.flatMap(({ match }, index) => {
    const isForAll = !/\bclaims\b/.test(match)
    return [...(isForAll ? [FOR_ALL] : []), ...matcherRemarks(match)].map((message) => ({
      path: ['workloads', index, 'match'],
      message,
    }))
  })

const FOR_ALL = 'it asks for no claim: whatever the issuer signs for us counts, of every program that it knows'
