import { type Claims, type ClaimValue, type EpochMs, Secret } from '../../core/index.ts'
import { readJsonObject } from '../../http/index.ts'
import type { UpstreamTokenSet } from '../../upstreams/index.ts'
import type { NewUpstreamSession } from './session.ts'

/** The tokens of one provider, with times. */
export interface HeldTokens extends UpstreamTokenSet {
  /** The provider's subject identifier of the user. */
  readonly user: string
  /** Changes with each refresh, to compare the stored with the loaded version. */
  readonly generation: string
  readonly obtainedAtMs: EpochMs
}

/** A decrypted session record. */
export interface SessionRecord extends Omit<NewUpstreamSession, 'tsid'> {
  /** Claims of the first provider that are copied to access tokens. */
  readonly claims: Claims
  readonly providers: ReadonlyMap<string, HeldTokens>
}

/** Short names, to keep sessions small. */
interface Written {
  s: string
  c: string
  f: string
  r: string
  e: number
  k: Claims
  p: Record<string, WrittenTokens>
}

interface WrittenTokens {
  u: string
  g: string
  o: number
  a: string
  r?: string
  i?: string
  x?: number
  ix?: number
  sc: readonly string[]
}

/** Serializes a record. It contains tokens and must be sealed before storage. */
export function writeRecord(record: SessionRecord): Buffer {
  const { subject: s, clientId: c, firstProvider: f, resource: r, endsAtMs: e, claims: k, providers } = record
  const p: Written['p'] = Object.fromEntries([...providers].map(([name, held]) => [name, writeTokens(held)]))
  return Buffer.from(JSON.stringify({ s, c, f, r, e, k, p } satisfies Written))
}

const writeTokens = (held: HeldTokens): WrittenTokens => ({
  u: held.user,
  g: held.generation,
  o: held.obtainedAtMs,
  a: held.accessToken.reveal(),
  ...(held.refreshToken === undefined ? {} : { r: held.refreshToken.reveal() }),
  ...(held.idToken === undefined ? {} : { i: held.idToken.reveal() }),
  ...(held.expiresAtMs === undefined ? {} : { x: held.expiresAtMs }),
  ...(held.idTokenExpiresAtMs === undefined ? {} : { ix: held.idTokenExpiresAtMs }),
  sc: held.scopes,
})

/** Parses a decrypted record. Sealing authenticates it, so the shape is trusted. */
export function readRecord(plain: Buffer): SessionRecord | undefined {
  const written = readJsonObject(plain) as unknown as Written | undefined
  if (written === undefined) return undefined
  const { s: subject, c: clientId, f: firstProvider, r: resource, e: endsAtMs, k: claims, p } = written
  const providers = new Map(Object.entries(p).map(([name, tokens]) => [name, readTokens(tokens)]))
  return { subject, clientId, firstProvider, resource, endsAtMs, claims, providers }
}

/**
 * The token alone: a string that V8 parsed out of JSON refers to the whole text, so that a cached access token would keep the
 * refresh token in memory.
 */
const tokenOnly = (token: string): Secret => new Secret(Buffer.from(token, 'utf8').toString('utf8'))

const readTokens = ({ u, g, o, a, r, i, x, ix, sc }: WrittenTokens): HeldTokens => ({
  user: u,
  generation: g,
  obtainedAtMs: o,
  accessToken: tokenOnly(a),
  refreshToken: r === undefined ? undefined : tokenOnly(r),
  idToken: i === undefined ? undefined : tokenOnly(i),
  expiresAtMs: x,
  idTokenExpiresAtMs: ix,
  scopes: sc,
})

/** The claims of these names, without a prototype and frozen. */
export function pickClaims(claims: Claims, names: ReadonlySet<string>): Claims {
  const picked = Object.create(null) as Record<string, ClaimValue>
  for (const name of names) {
    const value = claims[name]
    if (value !== undefined) picked[name] = value
  }
  return Object.freeze(picked)
}
