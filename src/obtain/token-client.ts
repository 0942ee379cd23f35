import {
  type Failure,
  FAILURES,
  type OnBehalf,
  OutboundError,
  type Log,
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

/** The fields of a type that say where its token endpoint is, and who we are there. */
export interface TokenClientSpec extends FlatClient {
  /** Undefined where `issuerUrl` leads to it. */
  readonly tokenUrl?: string | undefined
  readonly issuerUrl?: string | undefined
  /** Whose `tokenUrl` is, where the config says it. */
  readonly issuer?: string | undefined
  readonly caCertPath?: string | undefined
}

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
  /**
   * Whatever the answer's status; throws `OutboundError`, `secret_unavailable`, `config_error`, and what discovery throws. A
   * discovered endpoint that moved is looked for in new metadata, and asked once more.
   */
  post(request: TokenRequest): Promise<OutboundResponse>
  /** Where it was asked last: the token endpoint, or the issuer while its endpoint is not known. */
  readonly url: string
  /** What a change of makes another client: what was got before is retired then. */
  readonly secrets: readonly SecretHandle[]
  onRecovered(listener: () => void): void
  close(): Promise<void>
}

/** Milliseconds for one token, retries included. */
export const TOKEN_DEADLINE_MS = 10_000
const DISCOVERY_DEADLINE_MS = 5_000
const MAX_BYTES = 1024 * 1024

/**
 * The client of a config at its token endpoint: 10 s, 1 MiB, one retry, a circuit for all who go there with the same roots
 * (decisions §3.4). Throws `config_error` for a client that lacks what it authenticates with.
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
      // With other roots, or another certificate, it can fail where others reach it.
      service: JSON.stringify([what, tokenUrl ?? issuerUrl, caCertPath ?? '', ...(shown === undefined ? [] : [shown])]),
      onRecovered: () => recovered.forEach((tell) => tell()),
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

/** Whether an endpoint may be somewhere else by now: nothing is there, or nothing that takes token requests. */
const hasMoved = (result: OutboundResponse | OutboundError): boolean =>
  result instanceof OutboundError
    ? result.kind === 'unreachable' && !result.isSent
    : isNoTokenEndpoint(result) || (result.status >= 300 && result.status < 400)

/** A document must not send our secrets to a metadata service, nor to this machine where the issuer is on another. */
const learnedFrom = (issuerUrl: string): GuardOptions => ({
  allowPrivateIP: true,
  configuredUrls: [issuerUrl],
  chosenHost: new URL(issuerUrl).hostname,
})

/** Who calls has to do something, or who grants rights to them. */
export const isOfCaller = ({ code }: Failure): boolean =>
  FAILURES[code].fault === 'caller_token' || FAILURES[code].fault === 'caller_rights'

/** Logs why there is no token; `what` is what was tried, such as `token exchange`, at the endpoint of `client`. */
export function createTokenLog(what: string, config: string, client: Pick<TokenClient, 'url'>, log: Log) {
  return (failure: Failure): void => {
    const fields = { config, reason: failure.code, detail: failure.detail }
    // An open circuit was logged by what opened it; a line per refused request would only bury that.
    const { cause } = failure
    if (cause instanceof OutboundError && cause.kind === 'breaker_open') log.debug(fields, `${what} held back`)
    else if (isOfCaller(failure)) log.info(fields, `${what} refused`)
    else log.warn({ ...fields, url: shownUrl(client.url) }, `${what} failed`)
  }
}
