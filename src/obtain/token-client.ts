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
  /** Whatever the answer's status; throws `OutboundError`, `secret_unavailable`, `config_error`, and what discovery throws. */
  post(request: TokenRequest): Promise<OutboundResponse>
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
  const endpoint = ((): (() => Promise<ClientEndpoint>) => {
    if (documents === undefined) return () => Promise.resolve({ url: tokenUrl ?? '', issuer })
    const failureOf = (error: unknown, what: string) => outboundFailure(error, serviceOf(what))
    const { metadata } = createTokenEndpointDiscovery(issuerUrl, {
      documents: createDocuments(documents, deps.clock, failureOf),
      clock: deps.clock,
      isMutualTls: auth?.method === 'tlsClient',
    })
    return metadata
  })()
  return {
    post: async (request) => askTokenEndpoint({ outbound, client }, { ...request, ...(await endpoint()) }),
    secrets: client.lasting,
    onRecovered: (listener) => void recovered.push(listener),
    close: async () => {
      await Promise.all([outbound.close(), documents?.close()])
    },
  }
}

/** A document must not send our secrets to a metadata service, nor to this machine where the issuer is on another. */
const learnedFrom = (issuerUrl: string): GuardOptions => ({
  allowPrivateIP: true,
  configuredUrls: [issuerUrl],
  chosenHost: new URL(issuerUrl).hostname,
})

/** Who calls has to do something, or who grants rights to them. */
export const isOfCaller = ({ code }: Failure): boolean =>
  FAILURES[code].fault === 'caller_token' || FAILURES[code].fault === 'caller_rights'

/** Logs why there is no token; `what` is what was tried, such as `token exchange`. */
export function createTokenLog(what: string, config: string, url: string, log: Log) {
  return (failure: Failure): void => {
    const fields = { config, reason: failure.code, detail: failure.detail }
    // An open circuit was logged by what opened it; a line per refused request would only bury that.
    const { cause } = failure
    if (cause instanceof OutboundError && cause.kind === 'breaker_open') log.debug(fields, `${what} held back`)
    else if (isOfCaller(failure)) log.info(fields, `${what} refused`)
    else log.warn({ ...fields, url: shownUrl(url) }, `${what} failed`)
  }
}
