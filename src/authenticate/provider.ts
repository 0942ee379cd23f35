import { asFailure } from '../core/index.ts'
import type { Provider as ProviderSettings } from '../resources/index.ts'
import type { ClaimRules } from './claim-rules.ts'
import {
  type ClockTolerance,
  createKeyDiscovery,
  createKeyStore,
  createProviderClient,
  type KeyStore,
  type OAuthClient,
  openIntrospectionClient,
} from '../oauth/index.ts'
import type { AuthenticateDeps } from './deps.ts'
import { createRecentTokens, type RecentTokens } from './recent-tokens.ts'
import { createHealth } from './health.ts'
import { createIntrospect, type Introspect } from './introspector.ts'
import { openProviderFiles } from './provider-files.ts'

/** One identity provider at run time. */
export interface Provider {
  readonly name: string
  readonly issuer: string
  readonly jwtRules: ClaimRules
  readonly introspectionRules: ClaimRules
  readonly keys: KeyStore
  /** Undefined without `introspectionUrl`. */
  readonly introspect: Introspect | undefined
  /** Recently valid tokens, for attribution. */
  readonly recentTokens: RecentTokens
  /** Fetches the keys before a token needs them, if the provider has any. Never throws. */
  prefetch(): Promise<void>
  close(): Promise<void>
}

const DEADLINE_MS = 5000
const MAX_ANSWER_BYTES = 1024 * 1024

/** Opens files and connections of one provider (decisions §2.6); fetches nothing. */
export function createProvider(
  settings: ProviderSettings,
  tolerance: ClockTolerance,
  deps: AuthenticateDeps,
): Provider {
  const { name, issuerUrl, audience, jwksUrl, introspectionUrl } = settings
  const files = openProviderFiles(settings, deps)
  const own = openIntrospectionClient(settings, files, deps)
  const open = (what: 'keys' | 'introspection', clientCertificate?: OAuthClient['certificate']) =>
    deps.outbound({
      name: `${name} ${what}`,
      deadlineMs: DEADLINE_MS,
      maxBytes: MAX_ANSWER_BYTES,
      guard: {
        allowPrivateIP: settings.allowPrivateIP,
        configuredUrls: [issuerUrl, jwksUrl, introspectionUrl].filter((url) => url !== undefined),
      },
      clientCertificate,
      ...(files.caCert === undefined ? {} : { caCert: files.caCert }),
    })
  // Separate circuits: tokens that make introspection fail do not block key fetches (decisions §2.10).
  const [get, post] = [open('keys'), open('introspection', own?.certificate)]
  const client = createProviderClient(settings, files, { get, post, client: own, clock: deps.clock })
  const health = createHealth(name, deps.log, deps.metrics)
  // A provider for opaque tokens only may have neither discovery nor keys (decisions §2.3).
  const hasKeys = jwksUrl !== undefined || introspectionUrl === undefined
  if (hasKeys) health.keysAtHand(0)
  const keys = createKeyStore({
    clock: deps.clock,
    documents: client,
    location: jwksUrl ?? createKeyDiscovery(issuerUrl, client, deps.clock),
    onFetched(count, failure) {
      health.note('keys', failure)
      health.keysAtHand(count)
    },
  })

  const ask = introspectionUrl === undefined ? undefined : createIntrospect(introspectionUrl, client)
  const introspect: Introspect | undefined =
    ask &&
    (async (token, by) => {
      try {
        const answer = await ask(token, by)
        health.note('introspection', undefined)
        return answer
      } catch (error) {
        health.note('introspection', asFailure(error))
        throw error
      }
    })

  const rules = {
    issuer: issuerUrl,
    audience,
    audienceClaim: settings.audienceClaim,
    subject: settings.subject,
    tolerance,
  }
  return {
    name,
    issuer: issuerUrl,
    jwtRules: { ...rules, isIntrospected: false, requireAudience: true },
    introspectionRules: {
      ...rules,
      isIntrospected: true,
      requireAudience: settings.introspection?.requireAudience ?? true,
    },
    keys,
    introspect,
    recentTokens: createRecentTokens(deps.clock),
    async prefetch() {
      if (!hasKeys) return
      await keys.keys().catch(() => undefined)
    },
    async close() {
      health.close()
      files.close()
      await Promise.all([get.close(), post.close()])
    },
  }
}
