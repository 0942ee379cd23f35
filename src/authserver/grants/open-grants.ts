import type { AuthServerConfig } from '../config.ts'
import { createIdentityAssertions } from './identity-assertions.ts'
import { createGrantsWithoutLogin, type GrantsOptions, type GrantsWithoutLogin } from './without-login.ts'
import type { UpstreamDeps } from '../../upstreams/index.ts'
import { createWorkloads } from './workloads.ts'

/**
 * What a server gives out without a login, by its configuration; nothing is fetched. Throws `config_error` for a resource that no
 * route of it has.
 */
export function openGrants(
  { issuer, identityAssertions, workloads }: AuthServerConfig['spec'],
  { tokenUrl, ...parts }: Omit<GrantsOptions, 'issuer' | 'identityAssertions' | 'workloads'> & { tokenUrl: string },
  deps: UpstreamDeps,
): { readonly withoutLogin: GrantsWithoutLogin; readonly close: () => Promise<void> } {
  const { resources, clock } = parts
  const asserted =
    identityAssertions && createIdentityAssertions(identityAssertions.issuers, { issuer, resources, clock, deps })
  const own = workloads && createWorkloads(workloads, { audiences: [issuer, tokenUrl], resources, clock, deps })
  return {
    withoutLogin: createGrantsWithoutLogin({ issuer, ...parts, identityAssertions: asserted, workloads: own }),
    close: async () => {
      await Promise.all([asserted?.close(), own?.close()])
    },
  }
}
