import { causeOf, diagnoseConnection, OutboundError, type OutboundResponse } from '../../core/index.ts'
import { metadataUrl, readJsonObject, shownUrl } from '../../http/index.ts'
import { readChallenge } from '../../oauth/index.ts'
import { INITIALIZE } from '../../mcp/index.ts'
import { requestOnce } from '../../net/index.ts'
import type { ResolvedRoute } from '../../resources/index.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { about, type CheckResult } from './result.ts'

const MAX_BYTES = 1024 * 1024
const REMEDY =
  'Set resourceUrl to exactly the URL that clients connect to, with the path of the route; clients reject any other.'

/**
 * Tests what a client finds at `resourceUrl` without a token: the challenge must lead to a document with the same URL
 * (RFC 9728 §3.3, §5.1). A failure only if this configuration runs on this machine; otherwise an older one may
 * respond.
 */
export async function checkResource(
  route: ResolvedRoute,
  listenUrl: string | undefined,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const { resourceUrl, callers, path } = route
  if (resourceUrl === undefined || callers.mode !== 'oauth') return []
  const line = about('resource', shownUrl(resourceUrl))
  const wanted = metadataUrl(resourceUrl)
  const [there, here] = await Promise.all([
    connect(resourceUrl, context),
    listenUrl === undefined ? undefined : connect(new URL(path, listenUrl).href, context, { insecureSkipVerify: true }),
  ])
  const runsHere = here !== undefined && !(here instanceof OutboundError) && documentOf(here) === wanted
  const wrong = runsHere ? line.failed : line.warning
  const doubt = runsHere ? '' : '; or a different configuration runs there'
  if (there instanceof OutboundError) {
    const why = diagnoseConnection(there)?.cause ?? causeOf(there).code ?? there.kind
    return [
      runsHere
        ? line.warning(`clients connect there; unreachable from this machine: ${why}`, REMEDY)
        : line.skipped(`no response (${why}); test again when the proxy runs`),
    ]
  }
  const { status } = there
  if (status >= 500) return [line.warning(`status ${status}; expected 401`, 'Check the servers in front of the proxy.')]
  if (status !== 401) return [wrong(`status ${status}; expected 401, since the route requires a token${doubt}`, REMEDY)]
  const found = documentOf(there)
  if (found !== wanted)
    return [
      wrong(`resource_metadata of the challenge is ${printable(found)}; expected ${shownUrl(wanted)}${doubt}`, REMEDY),
    ]
  return [await readDocument(line, wanted, resourceUrl, context)]
}

/** Reads the document, which must have the route's own URL. */
async function readDocument(
  line: ReturnType<typeof about>,
  url: string,
  resourceUrl: string,
  context: CheckContext,
): Promise<CheckResult> {
  const answer = await ask({ method: 'GET', url, headers: { accept: 'application/json' } }, context)
  const where = `the document at ${shownUrl(url)}`
  const remedy = 'Forward /.well-known/ to the proxy.'
  if (answer instanceof OutboundError) return line.failed(`${where}: no response (${answer.kind})`, remedy)
  if (answer.status !== 200) return line.failed(`${where}: status ${answer.status}; expected 200`, remedy)
  const resource = readJsonObject(answer.body)?.['resource']
  if (resource === resourceUrl) return line.ok('challenge and document match')
  const actual = typeof resource === 'string' ? printable(resource) : 'none'
  return line.failed(`${where} has the resource ${actual}; expected this URL`, REMEDY)
}

/** Connects like a client without a token. */
const connect = (url: string, context: CheckContext, tls?: { readonly insecureSkipVerify: true }) =>
  ask({ method: 'POST', url, headers: INITIALIZE.headers, body: Buffer.from(INITIALIZE.body) }, context, tls)

async function ask(
  request: Parameters<typeof requestOnce>[1],
  { egressProxy }: CheckContext,
  targetTls?: { readonly insecureSkipVerify: true },
): Promise<OutboundResponse | OutboundError> {
  const { origin } = new URL(request.url)
  // One deadline covers all steps; it is not a setting of a route.
  const timeouts = { connect: 0, firstByte: 0, idle: 0 }
  const backend = { origin, timeouts, http2: false, targetTls, egressProxy }
  try {
    return await requestOnce(backend, request, { deadlineMs: STEP_MS, maxBytes: MAX_BYTES })
  } catch (error) {
    if (error instanceof OutboundError) return error
    throw error
  }
}

/** URL of the document in a challenge. */
const documentOf = ({ status, headers }: OutboundResponse): string | undefined =>
  status === 401 ? readChallenge(headers['www-authenticate']).resourceMetadata : undefined

/** A URL from a response, without its query. */
const printable = (url: string | undefined): string =>
  url === undefined ? 'no document' : URL.canParse(url) ? shownUrl(url) : 'an invalid URL'
