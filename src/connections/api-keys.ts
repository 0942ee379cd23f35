import { compileWhole } from '../cel/index.ts'
import { Failure, NO_CLAIMS, type Outbound, OutboundError, Secret } from '../core/index.ts'
import type { ConnectionProvider } from '../resources/index.ts'
import { caCertificate, type UpstreamDeps, type UpstreamLogin } from '../upstreams/index.ts'

type KeyTest = NonNullable<NonNullable<ConnectionProvider['secret']>['test']>

/** Checks the keys that people enter for one provider of type `secret`. */
export interface ApiKeys {
  readonly label: string
  readonly helpUrl: string | undefined
  /** Host of the service, if the configuration names it. */
  readonly host: string | undefined
  /** The key as the result of a login; or the problem to show in the form. */
  check(entered: string): Promise<UpstreamLogin | KeyProblem>
  /** Status of the test request with an invalid key; undefined without a test or a response. */
  probe(): Promise<number | undefined>
  /** Tries a stored key; undefined without a test request. Throws `identity_provider_unavailable`. */
  accepts(key: Secret): Promise<boolean | undefined>
  close(): Promise<void>
}

/** Why a key was not stored. */
export interface KeyProblem {
  readonly problem: string
  /** 422: the key is wrong; 503: the service can't check it now. */
  readonly status: 422 | 503
}

/** Recognizable in the log of the service. */
const INVALID_KEY = `extauth-check-${'0'.repeat(32)}`

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

  /** The status of the test request; undefined without a response. */
  const tried = async (to: Outbound, { url, header, prefix }: KeyTest, key: string): Promise<number | undefined> => {
    try {
      const headers = { 'user-agent': 'mcp-extauth', [header.toLowerCase()]: `${prefix}${key}` }
      return (await to.request({ method: 'GET', url, headers })).status
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error
      deps.log.warn({ provider: name, reason: error.kind }, 'the test request for a key has no response')
      return undefined
    }
  }

  /** Whether a status says anything about the key. */
  const says = (status: number | undefined): boolean => status !== undefined && status !== 429 && status < 500

  /** The problem that the service has with a key. */
  const refusal = async (key: string): Promise<KeyProblem | undefined> => {
    if (outbound === undefined || test === undefined) return undefined
    const status = await tried(outbound, test, key)
    if (status !== undefined && test.expect.includes(status)) return undefined
    if (!says(status)) {
      if (status !== undefined) deps.log.warn({ provider: name, status }, 'a key could not be checked by the service')
      return { problem: `The service can’t check this ${label} now. Try again in a moment.`, status: 503 }
    }
    deps.log.info({ provider: name, status }, 'a key was rejected by the service')
    return { problem: `The service did not accept this ${label} (status ${status}).`, status: 422 }
  }

  return {
    label,
    helpUrl,
    host: test === undefined ? undefined : new URL(test.url).host,
    async check(entered) {
      const key = entered.trim()
      if (key === '' || key.length > MOST_CHARACTERS || !KEY.test(key) || !isKey(key))
        return { problem: `This is not a valid ${label}. Check that you copied all of it.`, status: 422 }
      const refused = await refusal(key)
      if (refused !== undefined) return refused
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
    probe: async () => (outbound === undefined || test === undefined ? undefined : tried(outbound, test, INVALID_KEY)),
    async accepts(key) {
      if (outbound === undefined || test === undefined) return undefined
      const status = await tried(outbound, test, key.reveal())
      if (status !== undefined && test.expect.includes(status)) return true
      if (says(status)) return false
      throw new Failure('identity_provider_unavailable', { detail: `test request for ${name}: status ${status}` })
    },
    close: async () => outbound?.close(),
  }
}
