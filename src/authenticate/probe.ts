import { type EpochMs, Failure, type Outbound } from '../core/index.ts'
import type { Provider as ProviderSettings } from '../resources/index.ts'
import type { AuthenticateDeps } from './deps.ts'
import {
  ALGORITHMS,
  createKeyDiscovery,
  discoveryUrls,
  jsonAnswer,
  readKeys,
  createProviderClient,
  type OAuthClient,
  openIntrospectionClient,
  type ProviderClient,
} from '../oauth/index.ts'
import { createIntrospect } from './introspector.ts'
import { openProviderFiles } from './provider-files.ts'

/** Tests an identity provider step by step, with the requests that a token would cause. */
export interface ProviderProbe {
  /** Fetches the discovery document. Throws `Failure`; the detail names the document's different issuer. */
  discover(): Promise<{ readonly jwksUri: string }>
  /** Fetches the keys, from `jwksUri` where no `jwksUrl` is configured. Throws `Failure`. */
  keys(jwksUri: string | undefined): Promise<{ readonly count: number; readonly algorithms: readonly string[] }>
  /** Introspects an invalid token. Throws `Failure`, also if the endpoint reports it as active. */
  introspect(): Promise<void>
  /** `Date` of the last response; undefined without one. */
  serverTime(): { readonly atMs: EpochMs; readonly receivedAtMs: EpochMs } | undefined
  close(): Promise<void>
}

const DEADLINE_MS = 5000
const MAX_ANSWER_BYTES = 1024 * 1024
/** Invalid by its length, and recognizable in the provider's log. */
const NOBODYS_TOKEN = `extauth-check-${'0'.repeat(32)}`
const BY_CHECK = { caller: 'check', token: 'check' }

/** Uses the same files, connections, credentials and address guard as the authenticator (decisions §2.6). */
export function probeProvider(settings: ProviderSettings, deps: AuthenticateDeps): ProviderProbe {
  const { name, issuerUrl, jwksUrl, introspectionUrl } = settings
  const files = openProviderFiles(settings, deps)
  const own = openIntrospectionClient(settings, files, deps)
  let time: ReturnType<ProviderProbe['serverTime']>
  const open = (clientCertificate?: OAuthClient['certificate']): Outbound => {
    const outbound = deps.outbound({
      name: `${name} check`,
      deadlineMs: DEADLINE_MS,
      maxBytes: MAX_ANSWER_BYTES,
      breaker: false,
      guard: {
        allowPrivateIP: settings.allowPrivateIP,
        configuredUrls: [issuerUrl, jwksUrl, introspectionUrl].filter((url) => url !== undefined),
      },
      clientCertificate,
      ...(files.caCert === undefined ? {} : { caCert: files.caCert }),
    })
    return {
      ...outbound,
      async request(request) {
        const response = await outbound.request(request)
        const atMs = Date.parse(response.headers['date'] ?? '')
        if (!Number.isNaN(atMs)) time = { atMs, receivedAtMs: deps.clock.now() }
        return response
      },
    }
  }
  const [get, post] = [open(), open(own?.certificate)]
  const client = createProviderClient(settings, files, { get, post, client: own, clock: deps.clock })
  return {
    async discover() {
      try {
        return { jwksUri: await createKeyDiscovery(issuerUrl, client, deps.clock).jwksUri() }
      } catch (error) {
        throw (await otherIssuer(issuerUrl, client)) ?? error
      }
    },
    async keys(jwksUri) {
      const url = jwksUrl ?? jwksUri
      if (url === undefined) throw new Failure('identity_provider_error', { detail: 'no jwks_uri' })
      const keys = readKeys(jsonAnswer(await client.get(url, 'key set'), 'key set'))
      const algorithms: string[] = []
      for (const alg of ALGORITHMS) {
        const candidates = keys.filter((key) => key.alg === undefined || key.alg === alg)
        const imported = await Promise.all(candidates.map((key) => key.importFor(alg)))
        if (imported.some((key) => key !== undefined)) algorithms.push(alg)
      }
      return { count: keys.length, algorithms }
    },
    async introspect() {
      if (introspectionUrl === undefined) return
      const answer = await createIntrospect(introspectionUrl, client)(NOBODYS_TOKEN, BY_CHECK)
      if (answer.isActive)
        throw new Failure('identity_provider_error', { detail: 'it reports an invalid token as active' })
    },
    serverTime: () => time,
    async close() {
      files.close()
      await Promise.all([get.close(), post.close()])
    },
  }
}

/** The failure that names the document's issuer, if that is the defect. */
async function otherIssuer(issuerUrl: string, client: ProviderClient): Promise<Failure | undefined> {
  for (const url of discoveryUrls(issuerUrl)) {
    try {
      const { issuer } = jsonAnswer(await client.get(url, 'discovery document'), 'discovery document')
      if (typeof issuer !== 'string' || issuer === issuerUrl) continue
      const detail = `the discovery document is for the issuer ${JSON.stringify(issuer.slice(0, 200))}`
      return new Failure('identity_provider_error', { detail, rule: 'discovery_other_issuer' })
    } catch {
      // The first attempt has reported the defect.
    }
  }
  return undefined
}
