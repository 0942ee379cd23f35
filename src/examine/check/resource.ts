import { causeOf, diagnoseConnection, OutboundError, type OutboundResponse } from '../../core/index.ts'
import { metadataUrl, readJsonObject, shownUrl } from '../../http/index.ts'
import { readChallenge } from '../../login/index.ts'
import { INITIALIZE } from '../../mcp/index.ts'
import { requestOnce } from '../../net/index.ts'
import type { ResolvedRoute } from '../../resources/index.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { about, type CheckResult } from './result.ts'

const MAX_BYTES = 1024 * 1024
const REMEDY =
  'Set resourceUrl to exactly the URL that clients connect to, the path of the route included; they refuse another one.'

/**
 * What a client finds that connects to `resourceUrl` without a token: it reads the challenge, and in the document to which
 * that leads its own URL again, or refuses (RFC 9728 §3.3, §5.1). A failure only where this very configuration runs on this
 * machine: else what answers there may be the one before.
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
  const doubt = runsHere ? '' : '; or is this configuration not the one that runs there?'
  if (there instanceof OutboundError) {
    const why = diagnoseConnection(there)?.cause ?? causeOf(there).code ?? there.kind
    return [
      runsHere
        ? line.warning(`clients are sent there, and from this machine nobody answers: ${why}`, REMEDY)
        : line.skipped(`nobody answers there (${why}): check again when the proxy runs`),
    ]
  }
  const { status } = there
  if (status >= 500) return [line.warning(`it answers ${status}`, 'Look at what lies in front of the proxy.')]
  if (status !== 401)
    return [wrong(`it answers ${status}, where a route with callers asks for a token (401)${doubt}`, REMEDY)]
  const found = documentOf(there)
  if (found !== wanted)
    return [wrong(`its challenge leads to ${shown(found)}, that of this route to ${shownUrl(wanted)}${doubt}`, REMEDY)]
  return [await readDocument(line, wanted, resourceUrl, context)]
}

/** Its own URL is what a client looks for. */
async function readDocument(
  line: ReturnType<typeof about>,
  url: string,
  resourceUrl: string,
  context: CheckContext,
): Promise<CheckResult> {
  const answer = await ask({ method: 'GET', url, headers: { accept: 'application/json' } }, context)
  const where = `the document at ${shownUrl(url)}`
  const remedy = 'Let what lies in front of the proxy pass /.well-known/ to it.'
  if (answer instanceof OutboundError) return line.failed(`${where} does not come: ${answer.kind}`, remedy)
  if (answer.status !== 200) return line.failed(`${where} is not there: status ${answer.status}`, remedy)
  const resource = readJsonObject(answer.body)?.['resource']
  if (resource === resourceUrl) return line.ok('challenge and document lead clients here')
  const said = typeof resource === 'string' ? shown(resource) : 'no resource'
  return line.failed(`${where} names ${said}`, REMEDY)
}

/** As a client connects that has no token yet. */
const connect = (url: string, context: CheckContext, tls?: { readonly insecureSkipVerify: true }) =>
  ask({ method: 'POST', url, headers: INITIALIZE.headers, body: Buffer.from(INITIALIZE.body) }, context, tls)

async function ask(
  request: Parameters<typeof requestOnce>[1],
  { egressProxy }: CheckContext,
  targetTls?: { readonly insecureSkipVerify: true },
): Promise<OutboundResponse | OutboundError> {
  const { origin } = new URL(request.url)
  // The deadline holds them all: it is ours, no setting of a route.
  const timeouts = { connect: 0, firstByte: 0, idle: 0 }
  const backend = { origin, timeouts, http2: false, targetTls, egressProxy }
  try {
    return await requestOnce(backend, request, { deadlineMs: STEP_MS, maxBytes: MAX_BYTES })
  } catch (error) {
    if (error instanceof OutboundError) return error
    throw error
  }
}

/** Where a challenge says that the document is. */
const documentOf = ({ status, headers }: OutboundResponse): string | undefined =>
  status === 401 ? readChallenge(headers['www-authenticate']).resourceMetadata : undefined

/** What somebody else wrote. */
const shown = (url: string | undefined): string =>
  url === undefined ? 'no document' : URL.canParse(url) ? shownUrl(url) : 'something that is no URL'
