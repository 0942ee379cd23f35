import { createRequire } from 'node:module'
import type * as Sts from '@aws-sdk/client-sts'
import { type EpochMs, Failure, type Outbound, Secret } from '../../core/index.ts'
import { createSmithyHandler } from '../../net/index.ts'
import type { AwsKeys } from './identity/keys.ts'

// Loaded with the first config that needs it, because it takes 20 MiB.
const load = createRequire(import.meta.url)

export type StsLibrary = typeof Sts
export const loadSts = (): StsLibrary => load('@aws-sdk/client-sts') as StsLibrary

/** Keys that sign requests to STS. */
export type SigningKeys = () => Promise<{
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}>

export interface StsClientOptions {
  readonly region: string
  readonly endpoint: string
  readonly outbound: Outbound
  /** Called for each request; absent for unsigned requests. */
  readonly keys?: SigningKeys
}

/**
 * An STS client with every setting that the SDK would otherwise look up (credentials, profiles, retries, endpoint
 * variables), so it reads no file, variable or instance metadata.
 */
export function createStsClient({ region, endpoint, outbound, keys }: StsClientOptions): Sts.STSClient {
  const { STSClient } = loadSts()
  return new STSClient({
    region,
    endpoint,
    requestHandler: createSmithyHandler(outbound),
    // The cache caches failures and paces retries; retries here would multiply them.
    maxAttempts: 1,
    retryMode: 'standard',
    defaultsMode: 'standard',
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    userAgentAppId: '',
    defaultUserAgentProvider: () => Promise.resolve([['mcp-extauth']]),
    authSchemePreference: [],
    sigv4aSigningRegionSet: [],
    // The identity knows the keys' lifetime better than the SDK.
    ...(keys === undefined ? {} : { credentials: Object.assign(keys, { memoized: true }) }),
    credentialDefaultProvider: () => () =>
      Promise.reject(new Failure('internal_error', { detail: 'ambient credentials' })),
  })
}

/** Maximum role session (12 h) plus clock skew (5 min). */
const LONGEST_SESSION_MS = (12 * 60 + 5) * 60_000
const ACCESS_KEY_ID = /^\w{16,128}$/
/** Used in a header and in a signature. */
export const VISIBLE_ASCII = /^[\x21-\x7e]{1,16384}$/

/**
 * Validates the credentials of an STS response. Throws `sts_failed` for invalid ones, or ones valid longer than any
 * role session.
 */
export function keysOfSession(credentials: Sts.Credentials | undefined, nowMs: EpochMs): AwsKeys {
  const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '', Expiration } = credentials ?? {}
  const expiresAtMs = Expiration?.getTime() ?? Number.NaN
  const areUsable =
    ACCESS_KEY_ID.test(AccessKeyId) && VISIBLE_ASCII.test(SecretAccessKey) && VISIBLE_ASCII.test(SessionToken)
  if (!areUsable) throw new Failure('sts_failed', { detail: 'STS returned no valid credentials' })
  if (!(expiresAtMs > nowMs)) throw new Failure('sts_failed', { detail: 'STS returned expired credentials' })
  if (expiresAtMs > nowMs + LONGEST_SESSION_MS)
    throw new Failure('sts_failed', {
      detail: 'STS returned credentials that are valid longer than any role session',
    })
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: new Secret(SecretAccessKey),
    sessionToken: new Secret(SessionToken),
    expiresAtMs,
  }
}
