import {
  type Failure,
  FAILURES,
  type Log,
  type MonotonicMs,
  type OnBehalf,
  OutboundError,
  type OutboundResponse,
  type SecretHandle,
} from '../core/index.ts'
import { shownUrl } from '../http/index.ts'
import { type GuardOptions, outboundFailure } from '../net/index.ts'
import {
  askTokenEndpoint,
  type ClientEndpoint,
  createDocuments,
  createTokenEndpointDiscovery,
  isNoTokenEndpoint,
  openClient,
  serviceOf,
} from '../oauth/index.ts'
import { clientAuthOf, type FlatClient } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'

/** The fields of a type that configure its token endpoint and client. */
export interface TokenClientSpec extends FlatClient {
  /** Undefined when `issuerUrl` leads to it. */
  readonly tokenUrl?: string | undefined
  readonly issuerUrl?: string | undefined
  /** The issuer of `tokenUrl`, if configured. */
  readonly issuer?: string | undefined
  readonly caCertPath?: string | undefined
}

/** The variable parts of a token request. */
export interface TokenRequest {
  readonly form: readonly (readonly [name: string, value: string])[]
  /** Attribution for circuit and concurrency; undefined: the proxy's own. */
  readonly onBehalfOf?: OnBehalf
  readonly endsAtMs: MonotonicMs
}

/** A client at a token endpoint. */
export interface TokenClient {
  /**
   * Returns a response with any status; throws `OutboundError`, `secret_unavailable`, `config_error`, and discovery
   * failures. If a discovered endpoint moved, rediscovers it and repeats the request once.
   */
  post(request: TokenRequest): Promise<OutboundResponse>
  /** The endpoint of the last request, or the issuer before discovery. */
  readonly url: string
  /** Secrets whose change means a different client and invalidates cached credentials. */
  readonly secrets: readonly SecretHandle[]
  onRecovered(listener: () => void): void
  close(): Promise<void>
}

/** Deadline in milliseconds for one token, retries included. */
export const TOKEN_DEADLINE_MS = 10_000
const DISCOVERY_DEADLINE_MS = 5_000
const MAX_BYTES = 1024 * 1024

/**
 * The client of a config at its token endpoint: 10 s, 1 MiB, one retry, and a circuit shared by all users of the
 * endpoint with the same roots (decisions §3.4). Throws `config_error` for a client without its credential.
 */
export function createTokenClient(name: string, spec: TokenClientSpec, deps: ObtainDeps): TokenClient {
  const { caCertPath, tokenUrl, issuer, issuerUrl = '' } = spec
  const auth = clientAuthOf(spec)
  const client = openClient(auth, deps)
  const shown = auth?.tls?.certificateSecretRef
  const recovered: (() => void)[] = []
  const open = (what: string, deadlineMs: number, guard?: GuardOptions) =>
    deps.outbound({
      name,
      // With other roots or another certificate it can fail independently.
      service: JSON.stringify([what, tokenUrl ?? issuerUrl, caCertPath ?? '', ...(shown === undefined ? [] : [shown])]),
      onRecovered: () => recovered.forEach((notify) => notify()),
      deadlineMs,
      maxBytes: MAX_BYTES,
      retry: true,
      ...(guard === undefined ? {} : { guard }),
      clientCertificate: client.certificate,
      ...(caCertPath === undefined ? {} : { caCert: deps.caCertificate(caCertPath) }),
    })
  const isLearned = tokenUrl === undefined
  const outbound = open('token endpoint', TOKEN_DEADLINE_MS, isLearned ? learnedFrom(issuerUrl) : undefined)
  const documents = isLearned ? open('authorization server metadata', DISCOVERY_DEADLINE_MS) : undefined
  const discovery =
    documents &&
    createTokenEndpointDiscovery(issuerUrl, {
      documents: createDocuments(documents, deps.clock, (error, what) => outboundFailure(error, serviceOf(what))),
      clock: deps.clock,
      isMutualTls: auth?.method === 'tlsClient',
    })
  let asked: ClientEndpoint = { url: tokenUrl ?? issuerUrl, issuer }
  const ask = (request: TokenRequest, endpoint: ClientEndpoint): Promise<OutboundResponse> => {
    asked = endpoint
    return askTokenEndpoint({ outbound, client }, { ...request, ...endpoint })
  }
  const askDiscovered = async (
    request: TokenRequest,
    { metadata, moved }: NonNullable<typeof discovery>,
  ): Promise<OutboundResponse> => {
    const endpoint = await metadata()
    const first = await ask(request, endpoint).catch((error: unknown) => {
      if (error instanceof OutboundError) return error
      throw error
    })
    const another = hasMoved(first) ? await moved(endpoint) : undefined
    if (another !== undefined && another.url !== endpoint.url) return ask(request, another)
    if (first instanceof OutboundError) throw first
    return first
  }
  return {
    post: (request) => (discovery === undefined ? ask(request, asked) : askDiscovered(request, discovery)),
    get url() {
      return asked.url
    },
    secrets: client.lasting,
    onRecovered: (listener) => void recovered.push(listener),
    close: async () => {
      await Promise.all([outbound.close(), documents?.close()])
    },
  }
}

/** Whether an endpoint may have moved: it does not respond, or accepts no token requests. */
const hasMoved = (result: OutboundResponse | OutboundError): boolean =>
  result instanceof OutboundError
    ? result.kind === 'unreachable' && !result.isSent
    : isNoTokenEndpoint(result) || (result.status >= 300 && result.status < 400)

/** Discovery must not redirect secrets to a metadata service, nor to this machine when the issuer is remote. */
const learnedFrom = (issuerUrl: string): GuardOptions => ({
  allowPrivateIP: true,
  configuredUrls: [issuerUrl],
  chosenHost: new URL(issuerUrl).hostname,
})

/** The caller, or the administrator of the caller's permissions, must act. */
export const isOfCaller = ({ code }: Failure): boolean =>
  FAILURES[code].fault === 'caller_token' || FAILURES[code].fault === 'caller_rights'

/** Logs failed token requests; `what` is the operation, such as `token exchange`, at the endpoint of `client`. */
export function createTokenLog(what: string, config: string, client: Pick<TokenClient, 'url'>, log: Log) {
  return (failure: Failure): void => {
    const fields = { config, reason: failure.code, detail: failure.detail }
    // The failure that opened the circuit was logged; a line per rejected request would bury it.
    const { cause } = failure
    if (cause instanceof OutboundError && cause.kind === 'breaker_open') log.debug(fields, `${what} skipped`)
    else if (isOfCaller(failure)) log.info(fields, `${what} rejected`)
    else log.warn({ ...fields, url: shownUrl(client.url) }, `${what} failed`)
  }
}
