import {
  type Failure,
  type OnBehalf,
  OutboundError,
  type Log,
  type OutboundResponse,
  type SecretHandle,
} from '../core/index.ts'
import { shownUrl } from '../http/index.ts'
import { askTokenEndpoint, createClientAuthentication } from '../oauth/index.ts'
import type { TokenExchange } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'

/** The fields of a type that say where its token endpoint is, and who we are there. */
export type TokenClientSpec = Pick<
  TokenExchange,
  'tokenUrl' | 'clientId' | 'clientSecretRef' | 'clientAuthMethod' | 'clientKeySecretRef' | 'caCertPath'
>

/** What differs from one token request to the next. */
export interface TokenRequest {
  readonly form: readonly (readonly [name: string, value: string])[]
  /** Whose circuit and share it counts for; undefined: the proxy's own. */
  readonly onBehalfOf?: OnBehalf
  /** `performance.now()`. */
  readonly endsAtMs: number
}

/** One client at one token endpoint. */
export interface TokenClient {
  /** Whatever the answer's status; throws `OutboundError`, `secret_unavailable` and `config_error`. */
  post(request: TokenRequest): Promise<OutboundResponse>
  /** What it authenticates with; undefined for a public client. */
  readonly secret: SecretHandle | undefined
  onRecovered(listener: () => void): void
  close(): Promise<void>
}

/** Milliseconds for one token, retries included. */
export const TOKEN_DEADLINE_MS = 10_000
const MAX_BYTES = 1024 * 1024

/**
 * The client of a config at its token endpoint: 10 s, 1 MiB, one retry, a circuit for all who go there with the same roots
 * (decisions §3.4).
 */
export function createTokenClient(
  name: string,
  spec: TokenClientSpec,
  { clock, secrets, outbound: open, caCertificate }: ObtainDeps,
): TokenClient {
  const isAssertion = spec.clientAuthMethod === 'private_key_jwt'
  const ref = isAssertion ? spec.clientKeySecretRef : spec.clientSecretRef
  const secret = ref === undefined ? undefined : secrets.handle(ref)
  const authenticate = createClientAuthentication({
    clientId: spec.clientId,
    secret,
    method: spec.clientAuthMethod,
    clock,
  })
  let recovered: (() => void) | undefined
  const outbound = open({
    name,
    // With other roots it can fail where others reach it.
    service: JSON.stringify(['token endpoint', spec.tokenUrl, spec.caCertPath ?? '']),
    onRecovered: () => recovered?.(),
    deadlineMs: TOKEN_DEADLINE_MS,
    maxBytes: MAX_BYTES,
    retry: true,
    ...(spec.caCertPath === undefined ? {} : { caCert: caCertificate(spec.caCertPath) }),
  })
  const client = { outbound, authenticate, secret }
  return {
    post: (request) => askTokenEndpoint(client, { ...request, url: spec.tokenUrl }),
    secret,
    onRecovered: (listener) => void (recovered = listener),
    close: () => outbound.close(),
  }
}

/** Logs why there is no token; `what` is what was tried, such as `token exchange`. */
export function createTokenLog(what: string, config: string, url: string, log: Log) {
  return (failure: Failure): void => {
    const fields = { config, reason: failure.code, detail: failure.detail }
    // An open circuit was logged by what opened it; a line per refused request would only bury that.
    const { cause } = failure
    if (cause instanceof OutboundError && cause.kind === 'breaker_open') log.debug(fields, `${what} held back`)
    else if (failure.code === 'invalid_token' || failure.code === 'exchange_denied') log.info(fields, `${what} refused`)
    else log.warn({ ...fields, url: shownUrl(url) }, `${what} failed`)
  }
}
