import { createHash, timingSafeEqual } from 'node:crypto'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import type { Clock, Secret } from '../src/core/index.ts'
import type { RecordedRequest } from './mcp/state.ts'
import { type IssuedCredentials, verifySigv4 } from './sigv4-verify.ts'

/** Strict requirements of a backend's mount for every request. */
export type Requirement =
  | { readonly kind: 'none' }
  | { readonly kind: 'header'; readonly name: string; readonly value: Secret }
  | { readonly kind: 'bearer'; readonly token: Secret }
  | {
      readonly kind: 'jwt'
      readonly issuer: string
      readonly audience: string
      /** Required subject of the token; undefined: any. */
      readonly subject?: string
      /** Lower-case header that holds the token; `authorization` carries it as a bearer. Default `authorization`. */
      readonly header?: string
      readonly keys: () => JSONWebKeySet | Promise<JSONWebKeySet>
      /** Whether the issuer has taken the token with this `jti` back. */
      readonly isRevoked: (jti: string) => boolean
    }
  | {
      readonly kind: 'known'
      /** Facts about the sender of a bearer token; undefined for an invalid token. */
      readonly verify: (token: string) => Readonly<Record<string, unknown>> | undefined
    }
  | {
      readonly kind: 'sigv4'
      readonly region: string
      readonly service: string
      readonly lookup: (accessKeyId: string) => IssuedCredentials | undefined
      /** The one role that may call; absent: each. */
      readonly roleArn?: string
    }

/** Let in (with what was found out about the sender), or the answer that refuses. */
export type Verdict =
  | { readonly ok: true; readonly verified: Readonly<Record<string, unknown>> }
  | {
      readonly ok: false
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      readonly body: object
    }

export type Verifier = (request: Pick<RecordedRequest, 'method' | 'target' | 'headers' | 'body'>) => Promise<Verdict>

const unauthorized = (error: string): Verdict => ({
  ok: false,
  status: 401,
  headers: { 'www-authenticate': `Bearer realm="extauth-lab-backend", error="${error}"` },
  body: { error },
})

const accepted = (verified: Readonly<Record<string, unknown>> = {}): Verdict => ({ ok: true, verified })

/** The verifier of a requirement; it checks the request as received. */
export function createVerifier(requirement: Requirement, clock: Clock): Verifier {
  switch (requirement.kind) {
    case 'none':
      return () => Promise.resolve(accepted())
    case 'header':
      return headerVerifier(requirement.name, requirement.value)
    case 'bearer':
      return (request) => {
        const token = bearerOf(valuesOf(request.headers, 'authorization'))
        if (token === undefined) return Promise.resolve(unauthorized('invalid_request'))
        return Promise.resolve(
          requirement.token.equals(token)
            ? accepted({ token: 'the one that it knows' })
            : unauthorized('invalid_token'),
        )
      }
    case 'known':
      return (request) => {
        const token = bearerOf(valuesOf(request.headers, 'authorization'))
        if (token === undefined) return Promise.resolve(unauthorized('invalid_request'))
        const verified = requirement.verify(token)
        return Promise.resolve(verified === undefined ? unauthorized('invalid_token') : accepted(verified))
      }
    case 'jwt':
      return jwtVerifier(requirement, clock)
    default:
      return (request) => Promise.resolve(sigv4Verdict(request, requirement, clock))
  }
}

function headerVerifier(name: string, value: Secret): Verifier {
  return (request) => {
    const values = valuesOf(request.headers, name.toLowerCase())
    if (values.length === 1 && value.equals(values[0] ?? ''))
      return Promise.resolve(accepted({ header: `${name} has the value that it knows` }))
    const status = values.length === 0 ? 401 : 403
    return Promise.resolve({ ok: false, status, headers: {}, body: { error: 'wrong_header', header: name } })
  }
}

function jwtVerifier(requirement: Requirement & { kind: 'jwt' }, clock: Clock): Verifier {
  const name = requirement.header ?? 'authorization'
  return async (request) => {
    const values = valuesOf(request.headers, name)
    const token = name === 'authorization' ? bearerOf(values) : values.length === 1 ? values[0] : undefined
    if (token === undefined) return unauthorized('invalid_request')
    try {
      const { payload } = await jwtVerify(token, createLocalJWKSet(await requirement.keys()), {
        issuer: requirement.issuer,
        audience: requirement.audience,
        ...(requirement.subject === undefined ? {} : { subject: requirement.subject }),
        algorithms: ['RS256', 'ES256'],
        requiredClaims: ['exp', 'iat', 'sub', 'jti'],
        currentDate: new Date(clock.now()),
      })
      if (payload.jti === undefined || requirement.isRevoked(payload.jti)) return unauthorized('invalid_token')
      return accepted({ claims: payload })
    } catch {
      return unauthorized('invalid_token')
    }
  }
}

function sigv4Verdict(
  request: Parameters<Verifier>[0],
  requirement: Requirement & { kind: 'sigv4' },
  clock: Clock,
): Verdict {
  const { region, service, lookup } = requirement
  const verdict = verifySigv4(request, { region, service, lookup, nowMs: clock.now() })
  if (verdict.ok) {
    const { roleArn, sessionName, subject, accessKeyId, tags, sourceIdentity } = verdict.credentials
    if (requirement.roleArn !== undefined && requirement.roleArn !== roleArn)
      return denied(403, 'AccessDeniedException', 'This role may not call here')
    const more = {
      ...(tags === undefined ? {} : { tags }),
      ...(sourceIdentity === undefined ? {} : { sourceIdentity }),
    }
    return accepted({ roleArn, sessionName, subject, accessKeyId, ...more })
  }
  const { status, type, message } = verdict
  return denied(status, type, message)
}

const denied = (status: number, type: string, message: string): Verdict => ({
  ok: false,
  status,
  headers: { 'x-amzn-errortype': type },
  body: { __type: type, message },
})

/** All values of a header, in order; `name` is lower-case. */
export function valuesOf(headers: readonly string[], name: string): string[] {
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === name)
}

/** The token of exactly one `Authorization: Bearer` (RFC 6750 §2.1), else undefined. */
export function bearerOf(values: readonly string[]): string | undefined {
  return values.length === 1 ? /^Bearer ([A-Za-z0-9\-._~+/]+=*)$/i.exec(values[0] ?? '')?.[1] : undefined
}

/** Compares in constant time, whatever the lengths. */
export function sameText(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}
