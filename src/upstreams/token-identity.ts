import type { Claims, ClaimValue } from '../core/index.ts'
import { shapeOf, valueAt } from '../oauth/index.ts'
import type { IdentityFromToken } from '../resources/index.ts'
import { unusable } from './connection.ts'
import { identityText } from './identity-text.ts'

const WHERE = 'token endpoint'
const JWT_STEP = '|@upstreamjwt|'

/** The user in a token response. */
export interface TokenIdentity {
  readonly subject: string
  /** `sub`, and `name` and `email` if found; nothing else of the response, which contains tokens. */
  readonly claims: Claims
}

/**
 * The value at a path; after `|@upstreamjwt|` in the payload of the JWT, whose signature is not verified because it
 * came from its issuer directly.
 */
function valueOf(members: Claims, path: string): ClaimValue | undefined {
  const [outer = '', inner] = path.split(JWT_STEP, 2)
  const value = valueAt(members, outer)
  if (inner === undefined) return value
  const shape = typeof value === 'string' ? shapeOf(value) : undefined
  return shape?.kind === 'jwt' ? valueAt(shape.jwt.payload, inner) : undefined
}

/** Reads the user (`identityFromToken`). Throws `identity_provider_error` without a subject. */
export function readTokenIdentity(members: Claims, paths: IdentityFromToken): TokenIdentity {
  const textAt = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : identityText(valueOf(members, path), WHERE)
  const subject = textAt(paths.subjectPath)
  if (subject === undefined) throw unusable(`${WHERE}: no subject at subjectPath`)
  const [name, email] = [textAt(paths.namePath), textAt(paths.emailPath)]
  const claims = Object.assign(Object.create(null) as Record<string, ClaimValue>, {
    sub: subject,
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
  })
  return { subject, claims: Object.freeze(claims) }
}
