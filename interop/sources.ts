import type { AuthenticatedCaller, Claims } from '../src/core/index.ts'
import { seconds } from '../src/fields/index.ts'
import { createOutbound } from '../src/net/index.ts'
import { createIdentityPool } from '../src/obtain/index.ts'
import type { CloudSts } from '../src/resources/index.ts'

/** Requirements of AWS credential sources, for tests against other STS implementations. */

export const REGION = 'us-east-1'
export const clock = { now: () => Date.now() }

const nothing = () => undefined
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
const counter = { add: nothing, set: nothing, observe: nothing }
const metrics = {
  counter: () => ({ with: () => counter }),
  gauge: () => ({ with: () => counter }),
  histogram: () => ({ with: () => counter }),
}

/** Ports of a source whose STS is at `endpoint`; identities are its own. */
export function portsFor(env: Readonly<Record<string, string>>, endpoint: string) {
  const identities = createIdentityPool().hold()
  return {
    clock,
    log,
    metrics,
    env,
    identities,
    caCertificate: () => nothing,
    sts: { endpoint },
    outbound: (options: { readonly name: string }) => createOutbound({ ...options, clock, breaker: false }),
  }
}

export const specOf = (more: Partial<CloudSts>): CloudSts => ({
  region: REGION,
  service: 's3',
  roleClaim: 'groups',
  sessionNameClaim: 'sub',
  sessionDuration: seconds(900),
  ...more,
})

export const callerWith = (
  claims: Claims & { readonly sub: string },
  format: 'jwt' | 'opaque' = 'opaque',
): AuthenticatedCaller => ({
  kind: 'authenticated',
  provider: 'p',
  issuer: 'https://issuer.example',
  subject: claims.sub,
  identity: claims.sub,
  format,
  claims,
  expiresAtMs: undefined,
  tokenDigest: 'digest',
})

/** Leaves of `AWS_…` in the environment of this process nothing but these, which the SDK reads there. */
export function environmentOnly(env: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(process.env).filter((each) => each.startsWith('AWS_'))) delete process.env[name]
  for (const [name, value] of Object.entries(env)) process.env[name] = value
}
