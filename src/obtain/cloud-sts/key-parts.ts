import type { Claims } from '../../core/index.ts'
import { canonicalJson } from '../../resources/index.ts'
import type { SessionAttributes } from './session-attributes.ts'

/** Claims that change from token to token of one login without affecting permissions. */
const VOLATILE: ReadonlySet<string> = new Set(
  'exp iat nbf jti auth_time nonce at_hash c_hash s_hash sid session_state uti rh aio'.split(' '),
)

/**
 * The parts of the cache key that separate credentials of one caller (decisions §4): the role, the session name, and as canonical JSON every claim
 * but the volatile ones. Trust policies evaluate claims of many issuers and sessions are tagged with them, so a token with
 * another claim never gets what an earlier one got. Tags, source identity and policies are a part of their own: they may be
 * made of claims that are volatile.
 */
export function keyParts(
  roleArn: string,
  sessionName: string,
  claims: Claims,
  attributes?: SessionAttributes,
): readonly string[] {
  const lasting = Object.fromEntries(Object.entries(claims).filter(([name]) => !VOLATILE.has(name)))
  return [roleArn, sessionName, canonicalJson(lasting), canonicalJson(attributes ?? {})]
}
