import { z } from 'zod'
import { CLIENT_RULES, clientRuleFields } from './client-rules.ts'
import { storage } from './embedded-storage.ts'
import { configuredClient, identityAssertions, unique } from './programs/grants-without-login.ts'
import {
  celPattern,
  ISSUER,
  HTTP_ISSUER_PLACE,
  ISSUER_PLACE,
  judgePlainHttp,
  isRecord,
  withCel,
  withRules,
  type Rule,
  goDuration,
  int32,
  secretRef,
  parseGoDuration,
} from '../fields/index.ts'
import { AUTH_SERVER_FIELDS, type FieldTable, refusals, tabledFields } from './manifest-fields/index.ts'
import { FIRST_LOGIN, named, ORDINARY, type CalledUrl, type Remark, type TypeRecord } from './type-record.ts'
import {
  hasSynthesizedIdentity,
  providerName,
  upstreamProvider,
  type UpstreamProvider,
} from './upstream/upstream-provider.ts'
import { trustedIssuers } from './programs/trusted-issuers.ts'
import { workloadRemarks, workloads } from './programs/workload-issuers.ts'

const issuer = () =>
  z.string().max(2048).regex(ISSUER, { error: 'expected an issuer URL without query, fragment or trailing slash' })

const INSECURE = 'insecureAllowHTTP'
const httpOnlyOnLocalhost = (name: string): Rule => ({
  message: `expected https (http only for localhost, or with "${INSECURE}") and no user information`,
  at: name,
  holds: (value) =>
    typeof value[name] !== 'string' || !ISSUER.test(value[name]) || isIssuer(value[name], value[INSECURE] === true),
  cel: `!has(self.${name}) || ((self.${name}.matches(${celPattern(ISSUER_PLACE)}) || (has(self.${INSECURE}) && self.${INSECURE} && self.${name}.matches(${celPattern(HTTP_ISSUER_PLACE)}))) && isURL(self.${name}))`,
  json: {
    anyOf: [
      { properties: { [name]: { pattern: ISSUER_PLACE } } },
      {
        properties: { [INSECURE]: { const: true }, [name]: { pattern: HTTP_ISSUER_PLACE } },
        required: [INSECURE],
      },
    ],
  },
})

const isIssuer = (text: string, isInsecure: boolean): boolean =>
  URL.canParse(text) &&
  [ISSUER_PLACE, ...(isInsecure ? [HTTP_ISSUER_PLACE] : [])].some((place) => new RegExp(place).test(text))

const lifespan = (fallback: string) => goDuration().prefault(fallback)

/** Bounds of lifespans as Go durations (authserver.md §5). */
const LIFESPANS = {
  accessTokenLifespan: ['1m', '24h'],
  refreshTokenLifespan: ['1h', '720h'],
  authCodeLifespan: ['30s', '10m'],
} as const

const bounded = ([name, [least, most]]: [string, readonly [string, string]]): Rule => ({
  message: `expected ${least} to ${most}`,
  at: name,
  holds: ({ [name]: text }) => {
    const ms = typeof text === 'string' ? parseGoDuration(text) : undefined
    // An invalid duration is reported separately.
    return ms === undefined || (ms >= (parseGoDuration(least) ?? 0) && ms <= (parseGoDuration(most) ?? 0))
  },
  cel: `!has(self.${name}) || (duration(self.${name}) >= duration('${least}') && duration(self.${name}) <= duration('${most}'))`,
})

const tokenLifespans = () =>
  withRules(
    z.strictObject({
      accessTokenLifespan: lifespan('1h').describe('Of access tokens, 1m to 24h.'),
      refreshTokenLifespan: lifespan('168h').describe('Of refresh tokens, 1h to 720h; d is no unit.'),
      authCodeLifespan: lifespan('10m').describe('Of authorization codes, 30s to 10m.'),
    }),
    Object.entries(LIFESPANS).map(bounded),
  )

const rate = (perSecond: number, burst: number) =>
  z
    .strictObject({
      // The API server compares integers with an integer bound, so that 0 would be accepted.
      perSecond: withCel(z.number().min(0.001).max(10_000), 'self >= 0.001', 'expected at least 0.001')
        .default(perSecond)
        .describe('Requests per second of one client address.'),
      burst: int32(1, 100_000).default(burst).describe('Requests that may come at once.'),
    })
    .prefault({})

const limits = () =>
  z.strictObject({
    registration: rate(1, 10).describe('Registrations of clients.'),
    authorize: rate(5, 50).describe('Authorization requests and callbacks.'),
    token: rate(20, 100).describe('Token requests.'),
    registeredClients: int32(1, 1_000_000)
      .default(10_000)
      .describe('Registered clients that are kept; the oldest that was never used goes first.'),
  })

/** Claims that the server sets, or that would mean something else in its tokens: upstream values are not copied. */
export const RESERVED_CLAIMS: readonly string[] =
  'iss sub aud exp nbf iat jti client_id scope auth_time tsid gty azp cnf act may_act nonce at_hash c_hash sid'.split(
    ' ',
  )

const noReservedClaims: Rule = {
  message: `expected none of the claims that the server makes itself: ${RESERVED_CLAIMS.join(', ')}`,
  at: 'forwardClaims',
  holds: ({ forwardClaims }) =>
    !Array.isArray(forwardClaims) || !RESERVED_CLAIMS.some((name) => forwardClaims.includes(name)),
  cel: `!has(self.forwardClaims) || self.forwardClaims.all(name, !(name in [${RESERVED_CLAIMS.map((name) => `'${name}'`).join(', ')}]))`,
  json: { properties: { forwardClaims: { items: { not: { enum: [...RESERVED_CLAIMS] } } } } },
}

const knownPrimary: Rule = {
  message: 'expected the name of one of "upstreamProviders"',
  at: 'primaryUpstreamProvider',
  holds: ({ primaryUpstreamProvider: primary, upstreamProviders: providers }) =>
    primary === undefined ||
    !Array.isArray(providers) ||
    providers.some((provider: unknown) => isRecord(provider) && provider.name === primary),
  cel: '!has(self.primaryUpstreamProvider) || self.upstreamProviders.exists(p, p.name == self.primaryUpstreamProvider)',
}

/** Fields of other programs' manifests that are rejected by name, nested fields excluded. */
const OWN_FIELDS: FieldTable = Object.fromEntries(
  Object.entries(AUTH_SERVER_FIELDS).filter(([path]) => !path.includes('.')),
)

/** `spec.embeddedAuthServer`. */
export const embeddedAuthServer = () =>
  withRules(
    z.strictObject({
      issuer: issuer().describe('Issuer identifier, the iss claim of issued tokens.'),
      authorizationEndpointBaseUrl: issuer().optional().describe('Base of the advertised authorization endpoint.'),
      upstreamProviders: z.array(upstreamProvider()).min(1).max(64).describe('Upstream identity providers.'),
      primaryUpstreamProvider: providerName()
        .optional()
        .describe('Name of the upstream provider that identifies the user; a login starts there. Default: the first.'),
      hmacSecretRefs: z
        .array(secretRef('bytes'))
        .max(16)
        .optional()
        .describe('Secrets signing codes and refresh tokens; the first signs, all verify. Ephemeral when absent.'),
      signingKeySecretRefs: z
        .array(secretRef())
        .max(16)
        .optional()
        .describe('Signing keys for JWTs; the first signs, all verify. Ephemeral when absent.'),
      storage: storage().optional().describe('Storage backend; in memory when absent.'),
      tokenLifespans: tokenLifespans().optional().describe('Validity durations.'),
      limits: limits().optional().describe('What one client address may do. Extends the specification.'),
      clientMetadata: z
        .strictObject({
          allowPrivateIP: z.boolean().default(false).describe('Allow private addresses.'),
          caBundleRef: secretRef('certificates')
            .optional()
            .describe('CA certificates (PEM) that replace the system roots.'),
        })
        .optional()
        .describe('How client ID metadata documents are fetched. Extends the specification.'),
      identityAssertions: identityAssertions()
        .optional()
        .describe('Identity assertions (ID-JAG) that are taken for tokens. Extends the specification.'),
      workloads: workloads()
        .optional()
        .describe('Programs that get tokens of this server for their own JWTs. Extends the specification.'),
      trustedIssuers: trustedIssuers()
        .optional()
        .describe('Programs whose own tokens are taken, subject by subject. See `workloads`.'),
      clients: z
        .array(configuredClient())
        .min(1)
        .max(64)
        .optional()
        .describe('Clients that need no login. Extends the specification.'),
      forwardClaims: z
        .array(z.string().min(1).max(256))
        .max(50)
        .optional()
        .describe('More claims of the first upstream that our tokens carry. Extends the specification.'),
      ...clientRuleFields(),
      disableUpstreamTokenInjection: z
        .boolean()
        .optional()
        .describe(
          'Callers log in here, but backends get no token of the upstream provider: a route with this config alone sends no credential. Default: false.',
        ),
      ...tabledFields(OWN_FIELDS, '', []),
    }),
    [
      ...CLIENT_RULES,
      ...refusals(OWN_FIELDS),
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
      knownPrimary,
      unique('clients', 'clientId'),
      unique('trustedIssuers', 'issuerUrl'),
      noReservedClaims,
    ],
  )

/** `spec.embeddedAuthServer` with its defaults. */
export type EmbeddedAuthServer = z.output<ReturnType<typeof embeddedAuthServer>>

/** The upstream providers in login order: the first identifies the user (authserver.md §4.5). */
export function upstreamsInOrder(
  spec: Pick<EmbeddedAuthServer, 'upstreamProviders' | 'primaryUpstreamProvider'>,
): readonly UpstreamProvider[] {
  const isPrimary = ({ name }: UpstreamProvider): boolean => name === spec.primaryUpstreamProvider
  const { upstreamProviders: all } = spec
  return [...all.filter(isPrimary), ...all.filter((provider) => !isPrimary(provider))]
}

export const embeddedAuthServerRecord = {
  ...ORDINARY,
  ...named(embeddedAuthServer),
  summary: 'Only with type embeddedAuthServer.',
  runsOn: 'server',
  credentialOf: () => 'none',
  checkProbe: () => 'session',
  init: FIRST_LOGIN,
  urls: ({ upstreamProviders }) => upstreamProviders.flatMap((one, index) => upstreamUrls(one, index)),
  remarks: (spec) => [
    ...plainHttp(spec),
    ...ephemeralKeys(spec),
    ...synthesizedRemarks(spec),
    ...workloadRemarks(spec.workloads),
  ],
} satisfies TypeRecord<EmbeddedAuthServer>

/** URLs of an upstream that the server calls or redirects to. */
export function upstreamUrls(
  { oidcConfig, oauth2Config }: Pick<UpstreamProvider, 'oidcConfig' | 'oauth2Config'>,
  index: number,
  list = 'upstreamProviders',
): CalledUrl[] {
  const base = [list, index]
  const urls: (readonly [readonly PropertyKey[], string | undefined])[] = [
    [['oidcConfig', 'userInfoOverride', 'endpointUrl'], oidcConfig?.userInfoOverride?.endpointUrl],
    [['oauth2Config', 'authorizationEndpoint'], oauth2Config?.authorizationEndpoint],
    [['oauth2Config', 'tokenEndpoint'], oauth2Config?.tokenEndpoint],
    [['oauth2Config', 'userInfo', 'endpointUrl'], oauth2Config?.userInfo?.endpointUrl],
    [['oauth2Config', 'dcrConfig', 'discoveryUrl'], oauth2Config?.dcrConfig?.discoveryUrl],
    [['oauth2Config', 'dcrConfig', 'registrationEndpoint'], oauth2Config?.dcrConfig?.registrationEndpoint],
  ]
  return urls.flatMap(([path, url]) =>
    url === undefined ? [] : [{ path: [...base, ...path], url, insecureAllowHttp: undefined }],
  )
}

function plainHttp(spec: EmbeddedAuthServer): Remark[] {
  return (['issuer', 'authorizationEndpointBaseUrl'] as const)
    .filter((name) => spec[name] !== undefined && judgePlainHttp(spec[name], true) !== 'fine')
    .map((name) => ({
      path: [name],
      message: `plain http beyond this machine (${INSECURE}): codes, tokens and cookies are readable on the way`,
    }))
}

/** Upstreams that never identify the user. */
export const synthesizedIdentities = ({ upstreamProviders }: EmbeddedAuthServer): readonly string[] =>
  upstreamProviders.filter(hasSynthesizedIdentity).map(({ name }) => name)

const synthesizedRemarks = ({ upstreamProviders }: EmbeddedAuthServer): Remark[] =>
  upstreamProviders.flatMap((provider, index) =>
    hasSynthesizedIdentity(provider)
      ? [
          {
            path: ['upstreamProviders', index, 'oauth2Config'],
            message:
              'has no "userInfo" and no "identityFromToken": each login is a user of its own, with a synthesized subject',
          },
        ]
      : [],
  )

function ephemeralKeys(spec: EmbeddedAuthServer): Remark[] {
  return (['hmacSecretRefs', 'signingKeySecretRefs'] as const)
    .filter((name) => (spec[name] ?? []).length === 0)
    .map((name) => ({
      path: [name],
      message: 'not set: a key is made at start and lost at the next one, for development only',
    }))
}
