import {
  callerHash,
  explain,
  MASK,
  type Compared,
  type Explanation,
  type RuleDecision,
  type Sealed,
  maskLooks,
} from '../core/index.ts'
import { BodyCopy, type BodyBudget, type ShownBody } from './body-copy.ts'
import { maskQuery, maskTarget } from './mask.ts'
import { unsearchedHead, searched, type Searched } from './masked-heads.ts'
import type { Attempt, CallerSeen, RequestRecord, Summary } from './record.ts'
import { rpcSubjectOf, type RpcSubject } from '../mcp/index.ts'
import type { SecretTexts } from './secret-texts.ts'
import { bodyHead, type NotedAttempt, type WatchedRequest } from './watched-request.ts'

/** Dependencies of a record. */
export interface RecordDeps {
  readonly keepsBodies: boolean
  /** Claims and subjects may be shown. */
  readonly showClaims: boolean
  readonly budget: BodyBudget
  /** The role decision of a request; undefined where there is none. */
  readonly decisionOf: (requestId: string) => object | undefined
  /** The decision of the route's rules; undefined without rules. */
  readonly rulesOf: (requestId: string) => RuleDecision | undefined
  /** The inputs of the signature; undefined without one. */
  readonly signingOf: (
    sealed: Sealed,
  ) => { readonly canonicalRequest: string; readonly stringToSign: string } | undefined
}

const MAX_TARGET = 8192

/** The masked record of a request, finished or in progress. */
export function recordOf(watched: WatchedRequest, deps: RecordDeps): RequestRecord {
  const { inbound, matchedTo, knownAs, answer, result, marks } = watched
  const texts = watched.texts()
  const owned = matchedTo?.route.ownedHeaders ?? []
  const caller = callerOf(watched, deps)
  const heads = headsOf(watched, texts, owned)
  const rpc = rpcOf(watched)
  const mask = searched(partsOf(watched, heads, rpc), texts)
  return {
    summary: summaryOf(watched, deps, { texts, rpc, mask }),
    httpVersion: inbound?.request.httpVersion ?? '',
    peer: inbound?.peer ?? '',
    received: mask.mask(heads.received),
    dropped: [...watched.drops],
    caller,
    owned,
    targetOrigin: matchedTo?.route.target.origin,
    attempts: watched.attempts.map((attempt, at) => attemptOf(attempt, heads.attempts[at], { texts, mask }, deps)),
    decision: knownAs === undefined ? undefined : deps.decisionOf(watched.id),
    rules: knownAs === undefined || matchedTo?.route.authorize === undefined ? undefined : deps.rulesOf(watched.id),
    responded: answer && {
      status: answer.status,
      head: withoutQuery(mask.mask(heads.responded), matchedTo === undefined),
    },
    marks: result === undefined ? { ...marks } : marks,
    detail: result?.failure?.detail && texts.maskIn(result.failure.detail),
    why: result?.failure && maskedWhy(explain(result.failure), texts),
    connection: connectionOf(watched),
    requestBody: deps.keepsBodies ? requestBodyOf(watched, texts, deps.budget) : undefined,
    responseBody: result === undefined ? watched.responseCopy?.shown() : (watched.responseCopy?.end() ?? undefined),
  }
}

function connectionOf({ result }: WatchedRequest): RequestRecord['connection'] {
  const { connection } = result?.failure ?? {}
  return connection && { provider: connection.provider, problem: connection.problem }
}

/** The heads of a request, without what is secret by name; `searched` masks what else is. */
interface Heads {
  readonly received: string
  readonly attempts: readonly { readonly sent: string; readonly received: string }[]
  readonly responded: string
}

function headsOf({ inbound, attempts, answer }: WatchedRequest, texts: SecretTexts, owned: readonly string[]): Heads {
  const headOf = (headers: readonly string[] | undefined): string =>
    headers === undefined ? '' : unsearchedHead(headers, texts, owned)
  return {
    received: headOf(inbound?.request.rawHeaders),
    attempts: attempts.map(({ sealed, headers }) => ({ sent: headOf(sealed?.headers), received: headOf(headers) })),
    responded: headOf(answer?.headers),
  }
}

/** All that is to be searched in any case; a query that has a secret in it would only have the rest searched twice. */
function partsOf({ inbound, attempts }: WatchedRequest, heads: Heads, rpc: RpcSubject | undefined): string[] {
  const parts = [heads.received, heads.responded]
  for (const { sent, received } of heads.attempts) parts.push(sent, received)
  for (const path of [inbound?.request.url, ...attempts.map(({ sealed }) => sealed?.path)])
    if (path?.includes('?') === false) parts.push(path)
  if (rpc !== undefined) parts.push(rpc.method)
  if (rpc?.name !== undefined) parts.push(rpc.name)
  return parts
}

/** Token claims are untrusted text. */
function maskedWhy({ compared, ...why }: Explanation, texts: SecretTexts): Explanation {
  const masked = (values: Compared['came']): Compared['came'] =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, texts.maskIn(maskLooks(value))]))
  const { came, wanted } = compared ?? {}
  return {
    ...why,
    cause: texts.maskIn(why.cause),
    compared: came && wanted && { came: masked(came), wanted: masked(wanted) },
  }
}

/** The masked texts, and the subject of the request. */
interface SummaryDeps extends Masks {
  readonly rpc: RpcSubject | undefined
}

interface Masks {
  readonly texts: SecretTexts
  readonly mask: Searched
}

function summaryDepsOf(watched: WatchedRequest): SummaryDeps {
  const texts = watched.texts()
  return { texts, rpc: rpcOf(watched), mask: searched([], texts) }
}

const maskedTarget = (target: string, { texts, mask }: Masks): string =>
  mask.isClean(target) ? target : maskTarget(texts.maskIn(target))

/** The line of the list. */
export function summaryOf(
  watched: WatchedRequest,
  { showClaims }: Pick<RecordDeps, 'showClaims'>,
  { texts, rpc, mask }: SummaryDeps = summaryDepsOf(watched),
): Summary {
  const { inbound, matchedTo, knownAs, result, answer } = watched
  const caller = knownAs?.caller
  const url = inbound?.request.url ?? ''
  const isEndpoint = matchedTo === undefined && answer !== undefined && answer.status !== 404
  return {
    id: watched.id,
    atMs: watched.arrivedAtMs,
    isOpen: result === undefined,
    route: matchedTo?.route.name ?? '',
    type: matchedTo?.route.type ?? '',
    method: inbound?.method ?? '',
    target: (matchedTo === undefined ? pathOnly(mask.mask(url)) : maskedTarget(url, { texts, mask })).slice(
      0,
      MAX_TARGET,
    ),
    // Written out: a record is made of each request, and spreading costs more than all else in here.
    endpoint: isEndpoint ? pathOnly(mask.mask(url)) : undefined,
    rpcMethod: rpc && mask.mask(rpc.method),
    rpcName: rpc?.name === undefined ? undefined : mask.mask(rpc.name),
    caller: callerHash(caller),
    subject: showClaims && caller?.kind === 'authenticated' ? caller.subject : undefined,
    status: result?.status ?? answer?.status ?? 0,
    reason: result?.reason ?? '',
    attempts: watched.attempts.length,
    durationMs: watched.marks.finished ?? watched.elapsedMs,
  }
}

/** Endpoints of the proxy itself take codes, tickets and states: of their queries nothing is shown. */
function pathOnly(url: string): string {
  const at = url.indexOf('?')
  return at === -1 ? url : `${url.slice(0, at)}?${MASK}`
}

function withoutQuery(head: string, isOurs: boolean): string {
  return isOurs
    ? head.replace(/(^|\n)location\n([^\n]*)/, (_, start, url) => `${start}location\n${pathOnly(url)}`)
    : head
}

function rpcOf({ inbound, attempts, refused }: WatchedRequest): RpcSubject | undefined {
  const headers = inbound?.request.headers
  const method = headers?.['mcp-method']
  if (typeof method === 'string') {
    const name = headers?.['mcp-name']
    return { method: method.slice(0, 200), name: typeof name === 'string' ? name.slice(0, 200) : undefined }
  }
  const body = attempts.at(0)?.sealed?.body
  const bytes = body?.kind === 'kept' ? body.bytes : refused
  return bytes === undefined ? undefined : rpcSubjectOf(bytes)
}

function callerOf({ knownAs }: WatchedRequest, { showClaims }: RecordDeps): CallerSeen | undefined {
  const caller = knownAs?.caller
  if (caller === undefined) return undefined
  if (caller.kind === 'anonymous') return { kind: 'anonymous' }
  const { provider, issuer, format, expiresAtMs, subject, claims } = caller
  return {
    kind: 'authenticated',
    provider,
    issuer,
    format,
    expiresAtMs,
    hash: callerHash(caller),
    ...(showClaims ? { subject, claims } : {}),
  }
}

function attemptOf(
  noted: NotedAttempt,
  heads: Heads['attempts'][number] | undefined,
  masks: Masks,
  { signingOf }: RecordDeps,
): Attempt {
  const { texts, mask } = masks
  const { armed, sealed, headers, status, again } = noted
  const { number, lookup, beganMs, armedMs, sealedMs, sendingMs, receivedMs } = noted
  return {
    number,
    lookup,
    beganMs,
    armedMs,
    sealedMs,
    sendingMs,
    receivedMs,
    credential: armed?.credential.kind,
    sent: sealed && {
      method: sealed.method,
      target: maskedTarget(sealed.path, masks),
      head: mask.mask(heads?.sent ?? ''),
      signing: armed?.credential.kind === 'aws' ? maskedSigning(signingOf(sealed), texts) : undefined,
    },
    received:
      headers === undefined || status === undefined ? undefined : { status, head: mask.mask(heads?.received ?? '') },
    again: again && { reason: again.reason, status: 'status' in again ? again.status : undefined },
  }
}

const maskedSigning = (
  signing: ReturnType<RecordDeps['signingOf']>,
  texts: SecretTexts,
): NonNullable<Attempt['sent']>['signing'] =>
  signing && {
    canonicalRequest: maskedCanonical(texts.maskIn(signing.canonicalRequest)),
    stringToSign: texts.maskIn(signing.stringToSign),
  }

/** Its third line is the query. */
const maskedCanonical = (text: string): string =>
  text
    .split('\n')
    .map((line, index) => maskLooks(index === 2 ? maskQuery(line) : line))
    .join('\n')

function requestBodyOf(watched: WatchedRequest, texts: SecretTexts, budget: BodyBudget): ShownBody | undefined {
  if (watched.requestCopy !== undefined)
    return watched.result === undefined ? watched.requestCopy.shown() : watched.requestCopy.end()
  const sealed = watched.attempts.at(-1)?.sealed
  const bytes = sealed?.body.kind === 'kept' ? sealed.body.bytes : watched.refused
  if (bytes === undefined) return undefined
  const copy = new BodyCopy(bodyHead(sealed?.headers ?? watched.inbound?.request.rawHeaders ?? []), texts, budget)
  copy.add(bytes)
  return copy.end()
}
