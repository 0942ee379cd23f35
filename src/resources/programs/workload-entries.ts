import type { EmbeddedAuthServer } from '../embedded-auth-server.ts'
import type { TrustedIssuer } from './grants-without-login.ts'

/** Accepted workload tokens, from either form of configuration. */
export interface WorkloadEntry {
  /** Location in the configuration. */
  readonly place: string
  readonly issuer: TrustedIssuer
  /** CEL over `claims`. */
  readonly match: string
  readonly audiences: readonly string[]
  /** Go duration. */
  readonly maxTokenLifetime: string
  readonly resources: readonly string[] | undefined
  readonly scopes: readonly string[]
  /** Go duration. */
  readonly lifetime: string | undefined
  /** Each token is accepted once. */
  readonly isSingleUse: boolean
  /** The issued token expires with the presented one. */
  readonly endsWithToken: boolean
}

type WithWorkloads = Pick<EmbeddedAuthServer, 'workloads' | 'trustedIssuers'>

/** Whether a server accepts workload tokens. */
export const takesWorkloads = ({ workloads = [], trustedIssuers = [] }: WithWorkloads): boolean =>
  workloads.length + trustedIssuers.length > 0

/** The entries of a server in order: for an issuer, the first match applies. */
export function workloadEntries(
  { issuer, workloads = [], trustedIssuers = [] }: WithWorkloads & Pick<EmbeddedAuthServer, 'issuer'>,
  tokenUrl: string,
): readonly WorkloadEntry[] {
  const own = workloads.map((rule, index): WorkloadEntry => ({
    place: `workloads[${index}]`,
    issuer: { ...rule, issuerUrl: rule.issuer },
    match: rule.match,
    audiences: rule.audiences ?? [issuer, tokenUrl],
    maxTokenLifetime: rule.maxTokenLifetime,
    resources: rule.resources,
    scopes: rule.scopes ?? [],
    lifetime: rule.lifetime,
    isSingleUse: rule.singleUse,
    endsWithToken: false,
  }))
  const theirs = trustedIssuers.flatMap(({ allowPrivateIPs, jwtBearerGrant: grant, ...issuer }, index) =>
    grant.subjectBindings.map(({ subject, allowedResources }, nth): WorkloadEntry => ({
      place: `trustedIssuers[${index}].jwtBearerGrant.subjectBindings[${nth}]`,
      issuer: { ...issuer, allowPrivateIP: allowPrivateIPs },
      match: `claims.sub == ${JSON.stringify(subject)}`,
      audiences: grant.acceptedAudiences ?? [tokenUrl],
      maxTokenLifetime: grant.maxAssertionAge,
      resources: allowedResources,
      scopes: [],
      lifetime: undefined,
      isSingleUse: true,
      endsWithToken: true,
    })),
  )
  return [...own, ...theirs]
}

/** Trusted issuers of user and workload assertions at a server, without duplicates. */
export function trustedIssuersOf(
  spec: WithWorkloads & Pick<EmbeddedAuthServer, 'issuer' | 'identityAssertions'>,
): readonly TrustedIssuer[] {
  const all = [...(spec.identityAssertions?.issuers ?? []), ...workloadEntries(spec, '').map(({ issuer }) => issuer)]
  const settings = all.map(({ issuerUrl, jwksUrl, caBundleRef, allowPrivateIP }) => ({
    issuerUrl,
    jwksUrl,
    caBundleRef,
    allowPrivateIP,
  }))
  return [...new Map(settings.map((issuer) => [JSON.stringify(issuer), issuer])).values()]
}
