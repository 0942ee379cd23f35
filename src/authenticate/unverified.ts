import { parseBearer } from '../http/index.ts'
import { shapeOf } from '../oauth/index.ts'

/** Unverified claims of a rejected token. */
export interface Unverified {
  readonly issuer?: string
  readonly kid?: string
  readonly clientId?: string
}

/** Maximum characters of each. */
const MAX_LENGTH = 256

/**
 * Issuer, key id and client (`client_id`, else `azp`) of the token in these `Authorization` lines, for the log; undefined when
 * there is no token that can be parsed, or it has none of them.
 */
export function unverifiedIn(authorization: readonly string[]): Unverified | undefined {
  let token: string | undefined
  try {
    token = parseBearer(authorization)
  } catch {
    return undefined
  }
  const shape = token === undefined ? undefined : shapeOf(token)
  if (shape?.kind !== 'jwt') return undefined
  const { header, payload } = shape.jwt
  const found = Object.entries({
    issuer: payload['iss'],
    kid: header['kid'],
    clientId: payload['client_id'] ?? payload['azp'],
  }).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value.slice(0, MAX_LENGTH)]] : []))
  return found.length === 0 ? undefined : (Object.fromEntries(found) as Unverified)
}
