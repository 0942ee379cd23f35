import { compileWhole } from '../cel/index.ts'
import { Failure, NO_CLAIMS, type Outbound, Secret } from '../core/index.ts'
import type { ConnectionProvider } from '../resources/index.ts'
import { caCertificate, type UpstreamDeps, type UpstreamLogin } from '../upstreams/index.ts'

/** Checks the keys that people enter for one provider of type `secret`. */
export interface ApiKeys {
  readonly label: string
  readonly helpUrl: string | undefined
  /** Host of the service, if the configuration names it. */
  readonly host: string | undefined
  /** The key as the result of a login; or the problem to show in the form. Throws `identity_provider_unavailable`. */
  check(entered: string): Promise<UpstreamLogin | { readonly problem: string }>
  close(): Promise<void>
}

const MOST_CHARACTERS = 4096
const TEST_MS = 10_000
/** Printable ASCII without spaces: what fits into a header. */
const KEY = /^[\x21-\x7e]+$/

export function createApiKeys(
  { name, secret, caBundleRef, allowPrivateIP }: ConnectionProvider,
  deps: UpstreamDeps,
): ApiKeys {
  if (secret === undefined) throw new Failure('config_error', { detail: `connection ${name} has no settings for keys` })
  const { label, helpUrl, pattern, test } = secret
  const isKey = pattern === undefined ? () => true : compileWhole(pattern)
  const outbound: Outbound | undefined =
    test === undefined
      ? undefined
      : deps.outbound({
          name,
          service: JSON.stringify(['connection', test.url]),
          deadlineMs: TEST_MS,
          guard: { allowPrivateIP, configuredUrls: [test.url] },
          ...(caBundleRef === undefined ? {} : { caCert: caCertificate(caBundleRef, deps) }),
        })

  /** The status of the test request. */
  const tried = async (key: string): Promise<number> => {
    if (outbound === undefined || test === undefined) return 0
    const { url, header, prefix } = test
    try {
      const headers = { 'user-agent': 'mcp-extauth', [header.toLowerCase()]: `${prefix}${key}` }
      return (await outbound.request({ method: 'GET', url, headers })).status
    } catch (error) {
      throw new Failure('identity_provider_unavailable', {
        detail: `test request for ${name}: no response`,
        cause: error,
      })
    }
  }

  return {
    label,
    helpUrl,
    host: test === undefined ? undefined : new URL(test.url).host,
    async check(entered) {
      const key = entered.trim()
      if (key === '' || key.length > MOST_CHARACTERS || !KEY.test(key) || !isKey(key))
        return { problem: `This is not a valid ${label}. Check that you copied all of it.` }
      const status = await tried(key)
      if (test !== undefined && !test.expect.includes(status)) {
        deps.log.info({ provider: name, status }, 'a key was rejected by the service')
        return { problem: `The service did not accept this ${label} (status ${status}).` }
      }
      return {
        subject: 'key',
        claims: NO_CLAIMS,
        tokens: {
          accessToken: new Secret(key),
          refreshToken: undefined,
          idToken: undefined,
          expiresAtMs: undefined,
          idTokenExpiresAtMs: undefined,
          scopes: [],
        },
      }
    },
    close: async () => outbound?.close(),
  }
}
