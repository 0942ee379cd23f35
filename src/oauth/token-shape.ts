import type { Claims } from '../core/index.ts'
import { parseJsonObject } from '../http/index.ts'

/** A token that says it is a JWT; nothing in it is verified yet. */
export interface UnverifiedJwt {
  readonly header: Claims
  readonly payload: Claims
}

export type TokenShape =
  | { readonly kind: 'jwt'; readonly jwt: UnverifiedJwt }
  | { readonly kind: 'opaque' }
  /** A JWT by its looks that may not be read: ambiguous JSON, a signature that is not canonical base64url. */
  | { readonly kind: 'malformed' }

const OPAQUE: TokenShape = { kind: 'opaque' }
const MALFORMED: TokenShape = { kind: 'malformed' }

const SEGMENTS = /^([\w-]+)\.([\w-]+)\.([\w-]*)$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The bytes of a segment, or undefined when the encoding has stray bits: one value must have one spelling. */
function decode(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url')
  return bytes.toString('base64url') === segment ? bytes : undefined
}

/** The text of a segment that `JSON.parse` takes for an object. */
function objectText(segment: string): string | undefined {
  const bytes = decode(segment)
  if (bytes === undefined) return undefined
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? text : undefined
  } catch {
    return undefined
  }
}

/**
 * Tells a JWT from an opaque token (decisions §2.3): three base64url segments of which the first two are JSON objects
 * make a JWT, an empty signature included. Anything else is opaque, JWEs and detached signatures too.
 */
export function shapeOf(token: string): TokenShape {
  const match = SEGMENTS.exec(token)
  if (match === null) return OPAQUE
  const [, first = '', second = '', third = ''] = match
  const header = objectText(first)
  const payload = header === undefined ? undefined : objectText(second)
  if (header === undefined || payload === undefined) return OPAQUE
  if (decode(third) === undefined) return MALFORMED
  try {
    return { kind: 'jwt', jwt: { header: parseJsonObject(header), payload: parseJsonObject(payload) } }
  } catch {
    return MALFORMED
  }
}

/** When a JWT ends, in milliseconds since the epoch; undefined for one that does not say, and for anything else. */
export const jwtEndMs = (token: string): number | undefined => jwtTimeMs(token, 'exp')

/** The same for when it was issued. */
export const jwtIssuedMs = (token: string): number | undefined => jwtTimeMs(token, 'iat')

function jwtTimeMs(token: string, claim: 'exp' | 'iat'): number | undefined {
  const shape = shapeOf(token)
  const seconds = shape.kind === 'jwt' ? shape.jwt.payload[claim] : undefined
  return typeof seconds === 'number' ? seconds * 1_000 : undefined
}

/** The media type that `typ` of a JWT stands for: without its prefix, in lower case (RFC 7515 §4.1.9). */
export const jwtTypeOf = (typ: string): string => typ.toLowerCase().replace(/^application\//, '')
