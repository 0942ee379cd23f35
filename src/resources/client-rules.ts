import { z } from 'zod'
import { isLoopbackHost } from '../core/index.ts'
import { goDuration, int32, isRecord, parseGoDuration, type Rule, scope, withRules } from '../fields/index.ts'

/** Bounds of the cache time for a metadata document without caching headers. */
const [LEAST_FALLBACK_MS, MOST_FALLBACK_MS] = [1_000, 24 * 3_600_000]

const sensibleFallback: Rule = {
  message: 'expected 1s to 24h',
  at: 'cacheFallbackTtl',
  holds: ({ cacheFallbackTtl: text }) => {
    const ms = typeof text === 'string' ? parseGoDuration(text) : undefined
    // An invalid duration is reported separately.
    return ms === undefined || (ms >= LEAST_FALLBACK_MS && ms <= MOST_FALLBACK_MS)
  },
  cel: "!has(self.cacheFallbackTtl) || (duration(self.cacheFallbackTtl) >= duration('1s') && duration(self.cacheFallbackTtl) <= duration('24h'))",
}

const cimd = () =>
  withRules(
    z.strictObject({
      enabled: z.boolean().optional().describe('Whether clients are known by metadata documents; true when absent.'),
      cacheMaxSize: int32(1, 100_000).optional().describe('Documents that are kept at most; 1000 when absent.'),
      cacheFallbackTtl: goDuration()
        .optional()
        .describe('How long a document without a lifetime of its own is kept, 1s to 24h. Default: 5m.'),
    }),
    [sensibleFallback],
  )

/** RFC 3986 without query and fragment, because it is compared exactly. */
const HTTPS_WITHOUT_QUERY = /^https:\/\/[!-"$->@-~]+$/

/**
 * Fields about clients that register themselves. The schema has no defaults: an API server would write them into
 * objects of both groups, whose defaults differ.
 */
export const clientRuleFields = () => ({
  baselineClientScopes: z
    .array(scope())
    .max(10)
    .optional()
    .describe('Scopes that every client registers beside those that it names itself.'),
  allowConfidentialClientRegistration: z
    .boolean()
    .optional()
    .describe('Whether clients may register a secret or a key of theirs; true when absent.'),
  insecureAllowConfidentialOverLoopbackHTTP: z
    .boolean()
    .optional()
    .describe('The same where the issuer is http on this machine; true when absent.'),
  forceConfidentialRedirectUris: z
    .array(
      z.string().max(2048).regex(HTTPS_WITHOUT_QUERY, { error: 'expected an https URL without query and fragment' }),
    )
    .max(10)
    .optional()
    .describe(
      'Redirect URIs, byte for byte, whose clients get a secret (client_secret_post) though they ask for none: for clients that do not go on without one.',
    ),
  insecureAllowHTTP: z
    .boolean()
    .optional()
    .describe('Allow an issuer with plain http beyond this machine: codes and tokens are readable on the way.'),
  cimd: cimd().optional().describe('Clients that are known by their metadata documents (CIMD).'),
})

type Fields = Readonly<Record<string, unknown>>
const isConfidential = ({ allowConfidentialClientRegistration }: Fields): boolean =>
  allowConfidentialClientRegistration !== false
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** CEL can't express these rules: the defaults of the two groups differ. */
export const CLIENT_RULES: readonly Rule[] = [
  {
    message: 'needs "allowConfidentialClientRegistration"',
    at: 'forceConfidentialRedirectUris',
    holds: (value) => list(value['forceConfidentialRedirectUris']).length === 0 || isConfidential(value),
  },
  {
    message: 'a client on this machine is a public one; expected URLs of other hosts',
    at: 'forceConfidentialRedirectUris',
    holds: ({ forceConfidentialRedirectUris: uris }) =>
      !list(uris).some((uri) => typeof uri === 'string' && isLoopbackHost(URL.parse(uri)?.hostname ?? '')),
  },
  {
    message:
      'secrets of clients would be given out over plain http; expected "allowConfidentialClientRegistration: false" beside it, or an issuer with https',
    at: 'insecureAllowHTTP',
    holds: (value) => value['insecureAllowHTTP'] !== true || !isConfidential(value),
  },
  {
    message:
      'secrets of clients would be given out over plain http; expected "insecureAllowConfidentialOverLoopbackHTTP: true" beside it, or an issuer with https',
    at: 'allowConfidentialClientRegistration',
    holds: (value) =>
      value['insecureAllowConfidentialOverLoopbackHTTP'] !== false ||
      !isConfidential(value) ||
      typeof value['issuer'] !== 'string' ||
      !value['issuer'].startsWith('http://'),
  },
]

/** Defaults by path for manifests of the other group: nothing that grants clients more is enabled automatically. */
export const CLIENT_PRESETS: readonly (readonly [path: readonly [string, ...string[]], value: boolean])[] = [
  [['allowConfidentialClientRegistration'], false],
  [['insecureAllowConfidentialOverLoopbackHTTP'], false],
  [['cimd', 'enabled'], false],
]

/** Adds the defaults of the other group to an authorization server. Returns any other value unchanged. */
export function withClientPresets(server: unknown): unknown {
  if (!isRecord(server)) return server
  return CLIENT_PRESETS.reduce<Fields>((filled, [path, value]) => preset(filled, path, value), server)
}

function preset(object: Fields, [name, ...rest]: readonly [string, ...string[]], value: boolean): Fields {
  const [next, ...others] = rest
  const is = object[name] ?? undefined
  if (next === undefined) return is === undefined ? { ...object, [name]: value } : object
  // The schema reports values that aren't objects.
  if (is !== undefined && !isRecord(is)) return object
  return { ...object, [name]: preset(is ?? {}, [next, ...others], value) }
}
