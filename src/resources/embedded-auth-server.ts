import { z } from 'zod'
import { storage } from './embedded-storage.ts'
import { isRecord, withRules, type Rule } from './rules.ts'
import { goDuration, secretRef } from './scalars.ts'
import { named, ORDINARY, type Remark, type TypeRecord } from './type-record.ts'
import { upstreamProvider } from './upstream-provider.ts'

/** RFC 8414 §2: no query, no fragment, and (specification) no trailing slash. */
const ISSUER = /^https?:\/\/[^\s?#]+[^/\s?#]$/

const issuer = () =>
  z.string().max(2048).regex(ISSUER, { error: 'expected an issuer URL without query, fragment or trailing slash' })

const httpOnlyOnLocalhost = (name: string): Rule => ({
  message: 'expected https (http only for localhost) and no user information',
  at: name,
  holds: (value) => typeof value[name] !== 'string' || !ISSUER.test(value[name]) || isIssuer(value[name]),
  cel: `!has(self.${name}) || self.${name}.matches('^(https://[^/@]+|http://(localhost|127[.]0[.]0[.]1|[[]::1[]])(:[0-9]+)?)(/.*)?$')`,
  json: {
    properties: {
      [name]: { pattern: '^(https://[^/@]+|http://(localhost|127[.]0[.]0[.]1|[[]::1[\\]])(:[0-9]+)?)(/.*)?$' },
    },
  },
})

function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false
  return /^(https:\/\/[^/@]+|http:\/\/(localhost|127[.]0[.]0[.]1|\[::1\])(:[0-9]+)?)(\/.*)?$/.test(text)
}

const lifespan = (fallback: string) => goDuration().prefault(fallback)

/** `spec.embeddedAuthServer`. */
export const embeddedAuthServer = () =>
  withRules(
    z.strictObject({
      issuer: issuer().describe('Issuer identifier, the iss claim of issued tokens.'),
      authorizationEndpointBaseUrl: issuer().optional().describe('Base of the advertised authorization endpoint.'),
      upstreamProviders: z.array(upstreamProvider()).min(1).max(64).describe('Upstream identity providers.'),
      hmacSecretRefs: z
        .array(secretRef())
        .max(16)
        .optional()
        .describe('Secrets signing codes and refresh tokens; the first signs, all verify. Ephemeral when absent.'),
      signingKeySecretRefs: z
        .array(secretRef())
        .max(16)
        .optional()
        .describe('Signing keys for JWTs; the first signs, all verify. Ephemeral when absent.'),
      storage: storage().optional().describe('Storage backend; in memory when absent.'),
      tokenLifespans: z
        .strictObject({
          accessTokenLifespan: lifespan('1h').describe('Of access tokens.'),
          refreshTokenLifespan: lifespan('168h').describe('Of refresh tokens; d is no unit.'),
          authCodeLifespan: lifespan('10m').describe('Of authorization codes.'),
        })
        .optional()
        .describe('Validity durations.'),
    }),
    [
      httpOnlyOnLocalhost('issuer'),
      httpOnlyOnLocalhost('authorizationEndpointBaseUrl'),
      {
        message: 'the names of upstream providers must be unique',
        at: 'upstreamProviders',
        holds: ({ upstreamProviders }) => {
          const names = Array.isArray(upstreamProviders)
            ? upstreamProviders.flatMap((provider: unknown) => (isRecord(provider) ? [provider.name] : []))
            : []
          return new Set(names).size === names.length
        },
        cel: 'self.upstreamProviders.all(p, self.upstreamProviders.exists_one(q, q.name == p.name))',
      },
    ],
  )

/** `spec.embeddedAuthServer` with its defaults. */
export type EmbeddedAuthServer = z.output<ReturnType<typeof embeddedAuthServer>>

export const embeddedAuthServerRecord = {
  ...ORDINARY,
  ...named(embeddedAuthServer),
  summary: 'Only with type embeddedAuthServer.',
  runsOn: 'nowhere',
  fetches: false,
  remarks: ephemeralKeys,
} satisfies TypeRecord<EmbeddedAuthServer>

function ephemeralKeys(spec: EmbeddedAuthServer): Remark[] {
  return (['hmacSecretRefs', 'signingKeySecretRefs'] as const)
    .filter((name) => (spec[name] ?? []).length === 0)
    .map((name) => ({
      path: [name],
      message: 'not set: a key is made at start and lost at the next one, for development only',
    }))
}
