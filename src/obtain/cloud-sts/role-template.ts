import type { Claims, ClaimValue } from '../../core/index.ts'
import { ROLE_ARN, type RoleMapping, templateParts } from '../../resources/index.ts'
import { claimAt } from './claim-values.ts'

/** A caller's role from a mapping, or why there is none, without claim values. */
export type MappedRole = { readonly roleArn: string } | { readonly reason: string }

/** Allowed values of a placeholder: without `/` and `:`, so that they stay within their part of the ARN. */
const VALUE = /^[A-Za-z0-9_+=,.@-]{1,64}$/

/**
 * Builds the role of a mapping from claims: `roleArn` as it is, `roleArnTemplate` with claim values for placeholders.
 * No role for a claim that is missing, not a string, longer than 64 or of other characters, nor for an account
 * outside `allowedAccounts`.
 */
export function createRoleTemplate({
  roleArn,
  roleArnTemplate = '',
  allowedAccounts,
}: Pick<RoleMapping, 'roleArn' | 'roleArnTemplate' | 'allowedAccounts'>): (claims: Claims) => MappedRole {
  if (roleArn !== undefined) return () => ({ roleArn })
  const parts = templateParts(roleArnTemplate)
  const accounts = allowedAccounts === undefined ? undefined : new Set(allowedAccounts)

  return (claims) => {
    let arn = ''
    for (const part of parts) {
      if (typeof part === 'string') arn += part
      else {
        const value = claimAt(claims, part.claim)
        if (typeof value !== 'string' || !VALUE.test(value))
          return { reason: `the claim ${JSON.stringify(part.claim)} ${problemOf(value)}` }
        arn += value
      }
    }
    if (accounts !== undefined && !accounts.has(arn.split(':', 5)[4] ?? ''))
      return { reason: 'the account is not in allowedAccounts' }
    // Includes overlong results, which STS would report as a configuration error.
    if (!ROLE_ARN.test(arn) || arn.length > 2048) return { reason: 'the result is not a valid role ARN' }
    return { roleArn: arn }
  }
}

function problemOf(value: ClaimValue | undefined): string {
  if (value === undefined) return 'is missing'
  return typeof value === 'string' ? 'has invalid characters, or more than 64' : 'is not a string'
}
