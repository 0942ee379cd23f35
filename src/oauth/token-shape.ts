import { type Claims, type EpochMs } from '../core/index.ts'
import { parseJsonObject } from '../http/index.ts'

/** A parsed JWT, not yet verified. */
export interface UnverifiedJwt {
  readonly header: Claims
  readonly payload: Claims
}

export type TokenShape =
  | { readonly kind: 'jwt'; readonly jwt: UnverifiedJwt }
  | { readonly kind: 'opaque' }
  /** A JWT in form that must be rejected: ambiguous JSON, or a signature that is not canonical base64url. */
  | { readonly kind: 'malformed' }

const OPAQUE: TokenShape = { kind: 'opaque' }
const MALFORMED: TokenShape = { kind: 'malformed' }

const SEGMENTS = /^([\w-]+)\.([\w-]+)\.([\w-]*)$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes a segment; undefined when the encoding has stray bits, so that a value has one encoding only. */
function decode(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url')
  return bytes.toString('base64url') === segment ? bytes : undefined
}

/** The text of a segment with a JSON object. */
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
 * Distinguishes a JWT from an opaque token (decisions §2.3): three base64url segments of which the first two are JSON
 * objects make a JWT, even with an empty signature. Anything else is opaque, including JWEs and detached signatures.
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

/** Expiry of a JWT; undefined without one, and for other tokens. */
export const jwtEndMs = (token: string): EpochMs | undefined => jwtTimeMs(token, 'exp')

/** Issue time of a JWT, likewise. */
export const jwtIssuedMs = (token: string): EpochMs | undefined => jwtTimeMs(token, 'iat')

function jwtTimeMs(token: string, claim: 'exp' | 'iat'): EpochMs | undefined {
  const shape = shapeOf(token)
  const seconds = shape.kind === 'jwt' ? shape.jwt.payload[claim] : undefined
  return typeof seconds === 'number' ? seconds * 1_000 : undefined
}

/** The normalized `typ` of a JWT: without prefix, in lower case (RFC 7515 §4.1.9). */
export const jwtTypeOf = (typ: string): string => typ.toLowerCase().replace(/^application\//, '')
