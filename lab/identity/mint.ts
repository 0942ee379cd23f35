import { z } from 'zod'
import { LAB_AUDIENCE, type Tokens } from './tokens.ts'

/** Input of `/lab/token`. A `ttlSeconds` of zero or less mints a token that has already expired. */
export const MINT = z.strictObject({
  sub: z.string().min(1).max(256),
  groups: z.array(z.string().max(256)).max(1000).optional(),
  ttlSeconds: z.number().int().min(-86_400).max(86_400).default(3600),
  aud: z.array(z.string().min(1).max(2000)).max(20).optional(),
  claims: z.record(z.string(), z.json()).default({}),
  scope: z.string().max(2000).optional(),
  opaque: z.boolean().default(false),
  /** By its type no access token (RFC 9068), so that it passes for an ID token of the clients in `aud`. */
  idToken: z.boolean().default(false),
  alg: z.enum(['RS256', 'ES256']).default('RS256'),
})

/** Mints whatever token is asked for; the lab's only secret is that it has none. */
export async function mint(
  input: z.output<typeof MINT>,
  tokens: Tokens,
): Promise<{ access_token: string; expires_in: number }> {
  const { sub, groups, ttlSeconds, aud, claims, scope, opaque, alg, idToken } = input
  const token = await tokens.issue({
    subject: sub,
    audience: aud ?? [LAB_AUDIENCE],
    ttlSeconds,
    opaque,
    alg,
    typ: idToken ? 'JWT' : 'at+jwt',
    // Access tokens have the scope that Entra ID gives to a client that acts for a user, unless `claims` has another.
    claims: {
      ...(idToken ? {} : { scp: 'access_as_user' }),
      ...claims,
      ...(groups === undefined ? {} : { groups }),
      ...(scope === undefined ? {} : { scope }),
    },
  })
  return { access_token: token, expires_in: ttlSeconds }
}
