import { createCredentialCache } from '../../../../../src/cache/index.ts'
import {
  callerIdentity,
  Secret,
  type AuthenticatedCaller,
  type Claims,
  type Credential,
  type Log,
  type Metrics,
} from '../../../../../src/core/index.ts'
import { createOutbound } from '../../../../../src/net/index.ts'
import { createIdentityPool } from '../../../../../src/obtain/cloud-sts/index.ts'
import type { CloudStsAuth, CloudStsDeps } from '../../../../../src/obtain/cloud-sts/source.ts'
import type { CloudSts } from '../../../../../src/resources/index.ts'
import { seconds } from '../../../../../src/fields/index.ts'
import { showing } from '../../../shown-tokens.ts'

/** Counts by name and labels. */
export function countingMetrics(): { readonly metrics: Metrics; readonly counts: Map<string, number> } {
  const counts = new Map<string, number>()
  const add = (key: string, by: number) => counts.set(key, (counts.get(key) ?? 0) + by)
  const key = (name: string, labels: string[]) => [name, ...labels].join(' ')
  return {
    counts,
    metrics: {
      counter: (name) => ({ with: (...labels) => ({ add: (by = 1) => void add(key(name, labels), by) }) }),
      gauge: (name) => ({
        with: (...labels) => ({
          set: (value) => void counts.set(key(name, labels), value),
          add: (by) => void add(key(name, labels), by),
        }),
      }),
      histogram: () => ({ with: () => ({ observe: () => undefined }) }),
    },
  }
}

export function collectingLog(): { readonly log: Log; readonly lines: object[] } {
  const lines: object[] = []
  const write = (fields: object, message: string) => void lines.push({ ...fields, message })
  return { lines, log: { debug: write, info: write, warn: write, error: write } }
}

/** A value as claims are: without prototype, all the way down. */
export function claimsOf(value: object): Claims {
  return JSON.parse(JSON.stringify(value), (_name, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.assign(Object.create(null) as object, inner)
      : inner,
  ) as Claims
}

export function callerOf(claims: object, rest: Partial<AuthenticatedCaller> = {}): AuthenticatedCaller {
  const token = new Secret(`header.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`)
  const subject = 'sub' in claims && typeof claims.sub === 'string' ? claims.sub : ''
  const caller: AuthenticatedCaller = {
    kind: 'authenticated',
    provider: 'test',
    issuer: 'https://issuer.example',
    subject,
    identity: callerIdentity(claimsOf(claims), token.digest()),
    claims: claimsOf(claims),
    expiresAtMs: undefined,
    tokenDigest: token.digest(),
    format: 'jwt',
    ...rest,
  }
  return showing(caller, token)
}

export function authOf(spec: Partial<CloudSts>): CloudStsAuth & { type: 'cloudSts'; configHash: string } {
  const defaults: CloudSts = {
    region: 'eu-central-1',
    roleClaim: 'groups',
    service: 'aws-mcp',
    sessionDuration: seconds(3600),
    sessionNameClaim: 'sub',
  }
  return { name: 'backend', namespace: 'default', type: 'cloudSts', configHash: 'hash', spec: { ...defaults, ...spec } }
}

/** 2029-06-01, a fixed time that the double's credentials outlive. */
export const NOW_MS = Date.UTC(2029, 5, 1)

export function depsOf(endpoint: string | undefined, rest: Partial<CloudStsDeps> & { deadlineMs?: number } = {}) {
  const clock = { nowMs: NOW_MS, now: () => clock.nowMs }
  const { metrics, counts } = countingMetrics()
  const { log, lines } = collectingLog()
  const { deadlineMs, ...others } = rest
  const cache = createCredentialCache<Credential>({ clock, metrics, random: () => 0.5 })
  const outbound: CloudStsDeps['outbound'] = (options) =>
    createOutbound({ ...options, clock, metrics, breaker: false, ...(deadlineMs === undefined ? {} : { deadlineMs }) })
  const sts = endpoint === undefined ? {} : { sts: { endpoint } }
  const caCertificate = () => () => undefined
  const tokenFile = (): never => {
    throw new Error('no file')
  }
  const identities = createIdentityPool().hold()
  const ports = { clock, log, metrics, outbound, caCertificate, tokenFile, cache, identities, env: {} }
  return { deps: { ...ports, ...sts, ...others }, clock, counts, lines, identities }
}
