import { workloadEntries } from '../../resources/index.ts'
import type { AuthServerConfig } from '../config.ts'
import type { AuthServerDeps } from '../deps.ts'
import { createIdentityAssertions } from './identity-assertions.ts'
import { createGrantsWithoutLogin, type GrantsOptions, type GrantsWithoutLogin } from './without-login.ts'
import { createWorkloads } from './workloads.ts'

/**
 * Creates the grants without login of a configuration; fetches nothing. Throws `config_error` for a resource that no
 * route has.
 */
export function openGrants(
  spec: AuthServerConfig['spec'],
  { tokenUrl, ...parts }: Omit<GrantsOptions, 'issuer' | 'identityAssertions' | 'workloads'> & { tokenUrl: string },
  deps: AuthServerDeps,
): { readonly withoutLogin: GrantsWithoutLogin; readonly close: () => Promise<void> } {
  const { issuer, identityAssertions } = spec
  const { resources, clock } = parts
  const asserted =
    identityAssertions && createIdentityAssertions(identityAssertions.issuers, { issuer, resources, clock, deps })
  const entries = workloadEntries(spec, tokenUrl)
  const workloads =
    entries.length === 0 ? undefined : createWorkloads(entries, { resources, clock, store: deps.store, deps })
  return {
    withoutLogin: createGrantsWithoutLogin({ issuer, ...parts, identityAssertions: asserted, workloads }),
    close: async () => {
      await Promise.all([asserted?.close(), workloads?.close()])
    },
  }
}
