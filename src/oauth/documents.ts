import {
  type Claims,
  type Clock,
  type EpochMs,
  Failure,
  type Outbound,
  type OutboundRequest,
  type OutboundResponse,
  type RuleCode,
} from '../core/index.ts'
import { readJsonObject, shownUrl } from '../http/index.ts'
import { busyFailure, type ServiceFailures } from '../net/index.ts'

/** A published document's name in log details. */
export type DocumentName = 'discovery document' | 'key set'

/** Fetches the documents of a provider. */
export interface Documents {
  /**
   * GETs a document, following same-origin redirects; resolves to the 200 response. Throws
   * `identity_provider_unavailable` for temporary failures and `identity_provider_error` for those that need action.
   */
  get(url: string, what: DocumentName): Promise<OutboundResponse>
}

/**
 * Key sets have their own media type (RFC 7517 §8.5), the only one that the API server of Kubernetes accepts (406).
 */
const ACCEPTED = 'application/json, application/jwk-set+json'
const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Failures of a part of an identity provider; `what` names it: `token endpoint`. */
export const serviceOf = (what: string): ServiceFailures => ({
  what,
  unavailable: 'identity_provider_unavailable',
  unusable: 'identity_provider_error',
})

const DOCUMENT_RULES: Readonly<Record<string, RuleCode>> = {
  'key set': 'key_set_unusable',
  'discovery document': 'discovery_unusable',
} satisfies Readonly<Record<DocumentName, RuleCode>>

/** A failure for an unusable response of `what`; `why` continues the sentence, `status` is that of an error. */
export const unusableResponse = (what: string, why: string, status?: number): Failure =>
  new Failure('identity_provider_error', {
    detail: `${what}${why}`,
    rule: DOCUMENT_RULES[what],
    refusal: status === undefined ? undefined : { status, error: undefined },
  })

/** A request in messages: URL, name and time. */
export interface Asked {
  readonly url: string
  readonly service: ServiceFailures
  readonly nowMs: EpochMs
}

/** Throws unless the status is 200: 429 and 5xx as temporary, others with the URL for the person who must act. */
export function expectOk(response: OutboundResponse, { url, service, nowMs }: Asked): OutboundResponse {
  const { status } = response
  if (status === 200) return response
  throw (
    busyFailure(response, service, nowMs) ??
    unusableResponse(service.what, ` answered ${status} at ${shownUrl(url)}`, status)
  )
}

/** Parses a JSON object. Throws `identity_provider_error`: an HTML page is not an outage. */
export function jsonAnswer(response: OutboundResponse, what: string): Claims {
  const answer = readJsonObject(response.body)
  if (answer === undefined) throw unusableResponse(what, ': the response is not a JSON object with unique field names')
  return answer
}

export const documentRequest = (url: string, headers: Readonly<Record<string, string>> = {}): OutboundRequest => ({
  method: 'GET',
  url,
  headers: { ...headers, accept: ACCEPTED },
})

/** Fetches a document with `getOnce`, following same-origin redirects only (decisions §2.6). */
export async function getDocument(
  getOnce: (url: string) => Promise<OutboundResponse>,
  url: string,
  { what, clock }: { readonly what: DocumentName; readonly clock: Clock },
): Promise<OutboundResponse> {
  let at = url
  for (let redirects = 0; ; redirects++) {
    const response = await getOnce(at)
    if (!REDIRECTS.has(response.status))
      return expectOk(response, { url: at, service: serviceOf(what), nowMs: clock.now() })
    const { location = '' } = response.headers
    const next = URL.canParse(location, at) ? new URL(location, at) : undefined
    if (next === undefined || next.origin !== new URL(at).origin)
      throw unusableResponse(what, ' redirects to another origin')
    if (redirects === MAX_REDIRECTS) throw unusableResponse(what, ' redirects too often')
    at = next.href
  }
}

/** Fetches documents without credentials. `failureOf` maps errors of `outbound`. */
export function createDocuments(
  outbound: Outbound,
  clock: Clock,
  failureOf: (error: unknown, what: string) => Failure,
): Documents {
  return {
    get: (url, what) => {
      const getOnce = async (at: string) => {
        try {
          return await outbound.request(documentRequest(at))
        } catch (error) {
          throw failureOf(error, what)
        }
      }
      return getDocument(getOnce, url, { what, clock })
    },
  }
}
