import type { Sockets } from '../../sockets.ts'
import { LIMITS, type Rig, type RigOptions, startRig } from '../rig.ts'
import { ask, JWT_BEARER, trusting } from './rig.ts'

export const MATCH = "claims.repository == 'acme/reports' && claims.ref == 'refs/heads/main'"

/** An entry for jobs of one repository at the identity provider of the rig. */
export const jobsOf = (idp: Rig['idp'], more: object = {}) => {
  const { issuerUrl: issuer, ...keys } = trusting(idp)
  return { issuer, ...keys, match: MATCH, maxTokenLifetime: '10m', scopes: ['mcp:read'], ...more }
}

/** A server that accepts workload tokens of its identity provider, but no assertions. */
export const startWorkloads = (
  sockets: Sockets,
  options: RigOptions & { readonly entries?: (idp: Rig['idp']) => readonly object[] } = {},
): Promise<Rig> =>
  startRig(sockets, {
    ...options,
    spec: (idp) => ({
      limits: LIMITS,
      workloads: options.entries?.(idp) ?? [jobsOf(idp)],
      ...(typeof options.spec === 'function' ? options.spec(idp) : options.spec),
    }),
  })

/** The claims of a right token of a job; undefined takes one out. */
export function jobClaims(rig: Rig, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const now = Math.floor(rig.clock.now() / 1_000)
  const claims = {
    iss: rig.idp.url,
    sub: 'repo:acme/reports:ref:refs/heads/main',
    aud: rig.issuer,
    repository: 'acme/reports',
    ref: 'refs/heads/main',
    jti: 'an identifier',
    iat: now,
    exp: now + 300,
    ...more,
  }
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
}

/** A right token of a job but for `claims` and `header`. */
export const jobToken = (
  rig: Rig,
  claims: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> => rig.idp.key.sign(jobClaims(rig, claims), { typ: 'JWT', ...header })

/** Shows it as a workload does: without a client. */
export const showToken = (rig: Rig, assertion: string, more: Readonly<Record<string, string>> = {}) =>
  ask(rig, { grant_type: JWT_BEARER, assertion, ...more })
