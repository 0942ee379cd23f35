import type { Claims, ClaimValue } from '../../core/index.ts'
import { ROLE_ARN, type RoleMapping, templateParts } from '../../resources/index.ts'
import { claimAt } from './claim-values.ts'

/** The role of a mapping for a caller, or why there is none: words of the config, never a value of a claim. */
export type MappedRole = { readonly roleArn: string } | { readonly reason: string }

/** What may stand for a placeholder: no `/` and no `:`, so that it stays within its place of the ARN. */
const VALUE = /^[A-Za-z0-9_+=,.@-]{1,64}$/

/**
 * Makes the role of a mapping out of claims: `roleArn` as it is, `roleArnTemplate` with the value of a claim at each
 * placeholder. A claim that is missing, no string, longer than 64 or of other characters, and an account that is not among
 * `allowedAccounts`, give no role.
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
    // Also what became too long: STS would call it our mistake.
    if (!ROLE_ARN.test(arn) || arn.length > 2048) return { reason: 'it does not become a role ARN' }
    return { roleArn: arn }
  }
}

function problemOf(value: ClaimValue | undefined): string {
  if (value === undefined) return 'is missing'
  return typeof value === 'string' ? 'has characters that no role may get from it, or more than 64' : 'is not a string'
}
