import { createRequire } from 'node:module'
import type * as Sts from '@aws-sdk/client-sts'
import { Failure, Secret, type Outbound } from '../../core/index.ts'
import { createSmithyHandler } from '../../net/index.ts'
import type { AwsKeys } from './identity/keys.ts'

// Loaded with the first config that needs it: the others don't pay 20 MiB for it.
const load = createRequire(import.meta.url)

export type StsLibrary = typeof Sts
export const loadSts = (): StsLibrary => load('@aws-sdk/client-sts') as StsLibrary

/** What signs a request to STS. */
export type SigningKeys = () => Promise<{
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}>

export interface StsClientOptions {
  readonly region: string
  readonly endpoint: string
  readonly outbound: Outbound
  /** Asked for each request; absent for what nobody signs. */
  readonly keys?: SigningKeys
}

/**
 * A client of STS for which everything is given that the SDK would look for around it (credentials, profiles, retries,
 * endpoint variables), so it reads no file, no variable and no instance metadata.
 */
export function createStsClient({ region, endpoint, outbound, keys }: StsClientOptions): Sts.STSClient {
  const { STSClient } = loadSts()
  return new STSClient({
    region,
    endpoint,
    requestHandler: createSmithyHandler(outbound),
    // The cache in front remembers failures and paces what follows; a retry here would only multiply them.
    maxAttempts: 1,
    retryMode: 'standard',
    defaultsMode: 'standard',
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    userAgentAppId: '',
    defaultUserAgentProvider: () => Promise.resolve([['mcp-extauth']]),
    authSchemePreference: [],
    sigv4aSigningRegionSet: [],
    // Who keeps them knows better than the SDK how long they are good.
    ...(keys === undefined ? {} : { credentials: Object.assign(keys, { memoized: true }) }),
    credentialDefaultProvider: () => () =>
      Promise.reject(new Failure('internal_error', { detail: 'ambient credentials' })),
  })
}

/** No role session lives longer (12 h), however far clocks are apart (5 min). */
const LONGEST_SESSION_MS = (12 * 60 + 5) * 60_000
const ACCESS_KEY_ID = /^\w{16,128}$/
/** Goes into a header and into a signature. */
export const VISIBLE_ASCII = /^[\x21-\x7e]{1,16384}$/

/** The credentials of an answer of STS. Throws `sts_failed` for what can't be used, or would be good for longer than any role session. */
export function keysOfSession(credentials: Sts.Credentials | undefined, nowMs: number): AwsKeys {
  const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '', Expiration } = credentials ?? {}
  const expiresAtMs = Expiration?.getTime() ?? Number.NaN
  const areUsable =
    ACCESS_KEY_ID.test(AccessKeyId) && VISIBLE_ASCII.test(SecretAccessKey) && VISIBLE_ASCII.test(SessionToken)
  if (!areUsable) throw new Failure('sts_failed', { detail: 'STS gave no usable credentials' })
  if (!(expiresAtMs > nowMs)) throw new Failure('sts_failed', { detail: 'STS gave credentials that are not valid now' })
  if (expiresAtMs > nowMs + LONGEST_SESSION_MS)
    throw new Failure('sts_failed', {
      detail: 'STS gave credentials that would be valid for longer than any role session',
    })
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: new Secret(SecretAccessKey),
    sessionToken: new Secret(SessionToken),
    expiresAtMs,
  }
}
