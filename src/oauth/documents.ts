import {
  type Claims,
  type Clock,
  Failure,
  type Outbound,
  type OutboundRequest,
  type OutboundResponse,
  type RuleCode,
} from '../core/index.ts'
import { readJsonObject, shownUrl } from '../http/index.ts'
import { busyFailure, type ServiceFailures } from '../net/index.ts'

/** What a provider publishes, in our words for details in the log. */
export type DocumentName = 'discovery document' | 'key set'

/** The documents that a provider publishes. */
export interface Documents {
  /**
   * The 200 answer to a GET, redirects within the origin followed. Throws `identity_provider_unavailable` for what passes
   * by itself and `identity_provider_error` for what needs somebody.
   */
  get(url: string, what: DocumentName): Promise<OutboundResponse>
}

/** Keys have a media type of their own (RFC 7517 §8.5), and the API server of Kubernetes has no other (406). */
const ACCEPTED = 'application/json, application/jwk-set+json'
const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** A part of an identity provider, in our words: `token endpoint`. */
export const serviceOf = (what: string): ServiceFailures => ({
  what,
  unavailable: 'identity_provider_unavailable',
  unusable: 'identity_provider_error',
})

const DOCUMENT_RULES: Readonly<Record<string, RuleCode>> = {
  'key set': 'key_set_unusable',
  'discovery document': 'discovery_unusable',
} satisfies Readonly<Record<DocumentName, RuleCode>>

/** A response of a part of the provider, `what`, that can't be used; `why` continues its name, `status` is an error's. */
export const unusableResponse = (what: string, why: string, status?: number): Failure =>
  new Failure('identity_provider_error', {
    detail: `${what}${why}`,
    rule: DOCUMENT_RULES[what],
    refusal: status === undefined ? undefined : { status, error: undefined },
  })

/** What was asked, by whom it is called, and when. */
export interface Asked {
  readonly url: string
  readonly service: ServiceFailures
  readonly nowMs: number
}

/** Throws for every status but 200: 429 and 5xx pass by themselves, anything else needs somebody, who is told the URL. */
export function expectOk(response: OutboundResponse, { url, service, nowMs }: Asked): OutboundResponse {
  const { status } = response
  if (status === 200) return response
  throw (
    busyFailure(response, service, nowMs) ??
    unusableResponse(service.what, ` answered ${status} at ${shownUrl(url)}`, status)
  )
}

/** The JSON object that a provider answered. Throws `identity_provider_error`: an HTML page is not an outage. */
export function jsonAnswer(response: OutboundResponse, what: string): Claims {
  const answer = readJsonObject(response.body)
  if (answer === undefined) throw unusableResponse(what, ': the answer is not a JSON object with distinct names')
  return answer
}

export const documentRequest = (url: string, headers: Readonly<Record<string, string>> = {}): OutboundRequest => ({
  method: 'GET',
  url,
  headers: { ...headers, accept: ACCEPTED },
})

/** A document by `getOnce`, which asks one URL; redirects are followed within the origin alone (decisions §2.6). */
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

/** Documents that need no credentials. `failureOf` says what an error of `outbound` stands for. */
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
