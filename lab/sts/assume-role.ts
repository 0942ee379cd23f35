import { randomBytes } from 'node:crypto'
import type { EpochMs } from '../../src/core/index.ts'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import type { IssuedCredentials } from '../sigv4-verify.ts'
import { StsRefusal } from './xml.ts'

/** A role that the lab's STS knows, and whom it trusts. */
export interface LabRole {
  readonly arn: string
  /** The role may be assumed by tokens for one of these audiences. */
  readonly audiences: readonly string[]
  /** Required groups, any of them; absent: none. */
  readonly groups?: readonly string[]
  /** Principals that may assume it by `AssumeRole`; absent: none. */
  readonly trusts?: RoleTrust
  /** Longest session in seconds. Default 3600, as a role has it unless it is changed. */
  readonly maxSessionSeconds?: number
  /** Sessions by `AssumeRole` end after so long, whatever was asked for. No AWS does this: it shows how keys are renewed. */
  readonly sessionSeconds?: number
}

/** The trust policy of a role for `AssumeRole`. */
export interface RoleTrust {
  /** Roles whose sessions may. */
  readonly roles: readonly string[]
  readonly externalId?: string
  /** Tags that have to be there; with none, `sts:TagSession` is not allowed. */
  readonly tags?: readonly string[]
  /** Whether `sts:SetSourceIdentity` is allowed. */
  readonly allowsSourceIdentity?: boolean
}

export interface WebIdentityTrust {
  readonly issuer: string
  readonly keys: () => JSONWebKeySet
  readonly roles: readonly LabRole[]
}

/** Issued credentials and the response fields. */
export interface Assumed {
  readonly credentials: IssuedCredentials
  readonly audience: string
  readonly durationSeconds: number
}

const MIN_SECONDS = 900
const MAX_SECONDS = 43_200
export const DEFAULT_SECONDS = 3600
const MAX_TOKEN_CHARS = 20_000
const MAX_POLICY_CHARS = 2048

/**
 * Validates an AssumeRoleWithWebIdentity request in the order of AWS: parameters, token, audience, trust of the role.
 * Throws `StsRefusal` with the codes of the API reference.
 */
export async function assumeRole(form: URLSearchParams, trust: WebIdentityTrust, nowMs: EpochMs): Promise<Assumed> {
  const roleArn = parameter(form, 'RoleArn', /^arn:[\w-]+:iam::\d{12}:role\/[\w+=,.@\-/]{1,512}$/)
  const sessionName = parameter(form, 'RoleSessionName', /^[\w+=,.@-]{2,64}$/)
  const token = parameter(form, 'WebIdentityToken', new RegExp(`^[^]{4,${MAX_TOKEN_CHARS}}$`))
  const durationSeconds = durationOf(form)
  checkPolicy(form)

  const claims = await verifyToken(token, trust, nowMs)
  const role = trust.roles.find(({ arn }) => arn === roleArn)
  const audiences = [claims.aud ?? []].flat()
  // An audience that no role of this account knows is one that the OIDC provider entry does not list.
  if (!audiences.some((audience) => trust.roles.some((known) => known.audiences.includes(audience)))) {
    throw new StsRefusal(400, 'InvalidIdentityToken', 'Incorrect token audience')
  }
  const audience = role === undefined ? undefined : audiences.find((value) => role.audiences.includes(value))
  if (role === undefined || audience === undefined || !isInGroup(role, claims)) {
    throw new StsRefusal(403, 'AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity')
  }
  if (durationSeconds > (role.maxSessionSeconds ?? DEFAULT_SECONDS)) {
    throw invalid('The requested DurationSeconds exceeds the MaxSessionDuration set for this role.')
  }
  const credentials = newCredentials(roleArn, sessionName, claims.sub ?? '', nowMs + durationSeconds * 1000)
  return { credentials, audience, durationSeconds }
}

/** Credentials of a session that begins now. */
export const newCredentials = (
  roleArn: string,
  sessionName: string,
  subject: string,
  expiresAtMs: EpochMs,
): IssuedCredentials => ({
  accessKeyId: `ASIALAB${randomBytes(9).toString('hex').toUpperCase().slice(0, 13)}`,
  secretAccessKey: randomBytes(30).toString('base64'),
  sessionToken: randomBytes(180).toString('base64'),
  expiresAtMs,
  roleArn,
  sessionName,
  subject,
})

export const invalid = (message: string) => new StsRefusal(400, 'ValidationError', message)

export function parameter(form: URLSearchParams, name: string, pattern: RegExp): string {
  const values = form.getAll(name)
  const [value] = values
  if (value === undefined || value === '') {
    throw invalid(
      `1 validation error detected: Value null at '${name}' failed to satisfy constraint: Member must not be null`,
    )
  }
  if (values.length > 1 || !pattern.test(value)) {
    throw invalid(`1 validation error detected: Value at '${name}' failed to satisfy constraint`)
  }
  return value
}

export function durationOf(form: URLSearchParams): number {
  const text = form.get('DurationSeconds')
  if (text === null) return DEFAULT_SECONDS
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (seconds >= MIN_SECONDS && seconds <= MAX_SECONDS) return seconds
  throw invalid("1 validation error detected: Value at 'durationSeconds' failed to satisfy constraint")
}

export function checkPolicy(form: URLSearchParams): void {
  const policy = form.get('Policy')
  if (policy === null) return
  if (policy.length > MAX_POLICY_CHARS) throw new StsRefusal(400, 'PackedPolicyTooLarge', 'Packed policy is too large.')
  try {
    JSON.parse(policy)
  } catch {
    throw new StsRefusal(400, 'MalformedPolicyDocument', 'The policy is not valid JSON.')
  }
}

async function verifyToken(token: string, trust: WebIdentityTrust, nowMs: EpochMs): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet(trust.keys()), {
      issuer: trust.issuer,
      algorithms: ['RS256', 'ES256'],
      requiredClaims: ['sub', 'aud', 'iat', 'exp'],
      currentDate: new Date(nowMs),
    })
    return payload
  } catch (error) {
    if (error instanceof errors.JWTExpired) {
      throw new StsRefusal(400, 'ExpiredTokenException', 'Token expired')
    }
    if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'nbf') {
      throw new StsRefusal(
        403,
        'IDPRejectedClaim',
        'The identity provider rejected the claim: the token is not valid yet',
      )
    }
    throw new StsRefusal(400, 'InvalidIdentityToken', 'The web identity token could not be validated')
  }
}

function isInGroup(role: LabRole, claims: JWTPayload): boolean {
  if (role.groups === undefined) return true
  const groups: unknown = claims['groups']
  return Array.isArray(groups) && role.groups.some((group) => groups.includes(group))
}
