import {
  asFailure,
  type EndpointResponse,
  Failure,
  type LocalHandler,
  type LocalRequest,
  type Log,
} from '../core/index.ts'
import type { ClientNetwork } from './client-network.ts'
import { readCookies } from './login/browser.ts'
import { failurePage } from './login/outcome.ts'
import type { Visit } from './login/parts.ts'
import type { Limit } from './rates.ts'
import { contentOf, type Page, responseOf, type Reply } from './reply.ts'
import { storeFailure } from './store-failure.ts'

export interface BrowserEndpointOptions {
  readonly clientNetwork: ClientNetwork
  readonly limit: Limit
  /** Origins of the own pages, which may post forms. */
  readonly ownOrigins: readonly string[]
  readonly log: Log
  /** The page for a failure. Default: that of logins. */
  readonly failed?: (failure: Failure, requestId: string) => Page
}

/** Creates an endpoint for browsers at `path`. */
export type BrowserEndpoint = (
  path: string,
  work: (request: LocalRequest, visit: Visit) => Promise<Reply> | Reply,
  accepts?: Pick<LocalHandler, 'methods' | 'bodyLimitBytes' | 'takesForeignForms'>,
) => LocalHandler

/** Endpoints for browsers: every failure is an HTML page. */
export function createBrowserEndpoints(options: BrowserEndpointOptions): BrowserEndpoint {
  const { clientNetwork, limit, ownOrigins, log, failed = failurePage } = options
  const reply = async (request: LocalRequest, answer: () => Promise<Reply>): Promise<EndpointResponse> => {
    try {
      limit(request.client.address)
      return responseOf(await answer())
    } catch (error) {
      const failure = asFailure(storeFailure(error))
      const { code: reason, detail } = failure
      log.warn({ reason, detail, request: request.id }, 'a page of the login could not be shown')
      return responseOf(failed(failure, request.id))
    }
  }
  return (path, work, accepts = { methods: ['GET'], bodyLimitBytes: 0 }) => ({
    path,
    ...accepts,
    cors: 'allowed_origins',
    ownOrigins,
    handle: (request) =>
      reply(request, () => {
        const visit: Visit = { requestId: request.id, cookies: readCookies(request.request.headers.cookie) }
        return clientNetwork.run(request.client.address, async () => work(request, visit))
      }),
    failureContent: (failure, requestId) => contentOf(failed(failure, requestId)),
  })
}

/** The fields of a posted form. Throws `bad_request` for another content type. */
export function readForm({ request, body }: LocalRequest): URLSearchParams {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded')
    throw new Failure('bad_request', { detail: 'the content type must be application/x-www-form-urlencoded' })
  return new URLSearchParams(body.toString('utf8'))
}
