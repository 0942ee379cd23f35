import {
  ANONYMOUS,
  type AuthenticatedCaller,
  type Caller,
  type Credential,
  Failure,
  FAILURES,
  type Secret,
} from '../../core/index.ts'
import { createSource } from '../../obtain/index.ts'
import { stsEndpointOf } from '../../obtain/cloud-sts/index.ts'
import {
  checkProbeOf,
  clientsOf,
  hasRoles,
  type ResolvedAuth,
  type ResolvedAuthOf,
  type ResolvedRoute,
  type RoleType,
  showsCallerToken,
  signsAsService,
  upstreamTokenOf,
  urlsCalledBy,
} from '../../resources/index.ts'
import { decideFor } from '../explain/explain-report.ts'
import { unknownCaller, INVALID_TOKEN } from './caller.ts'
import { acceptedOf, checkIdentity } from './aws.ts'
import { checkConnection, type Service } from './connection.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { checkFile } from './files.ts'
import { about, type CheckResult, failureText } from './result.ts'
import { hasItsSecrets } from './secrets.ts'

/** The credential for a backend, and the lines about obtaining it. */
export interface CheckedCredential {
  readonly lines: readonly CheckResult[]
  /** Undefined if there is none, or none without a caller. */
  readonly credential: Credential | undefined
}

/** Backends reject signatures at larger clock differences. */
const STS_DIFFERENCE_MS = 60_000

/** Obtains the credential of a route as a request does: from its secret, its token endpoint or STS. */
export function checkCredential(
  route: ResolvedRoute,
  caller: AuthenticatedCaller | undefined,
  context: CheckContext,
): Promise<CheckedCredential> {
  const { auth } = route
  if (auth.type === 'cloudSts' && signsAsService(auth.spec)) return checkService(auth, context)
  if (hasRoles(auth)) return checkSts(auth, route.onMatcherError, caller, context)
  const probe = checkProbeOf(auth)
  if (probe === 'session') return Promise.resolve({ lines: [], credential: undefined })
  return probe === 'exchange' ? checkExchange(auth, caller, context) : checkOwn(auth, context)
}

/** Obtains it from the source that requests use, for a known caller. Closes the connections afterwards. */
async function obtain(
  auth: ResolvedAuth,
  caller: Caller,
  context: CheckContext,
  token: Secret = INVALID_TOKEN,
): Promise<Credential> {
  const source = createSource(auth, context.obtain)
  try {
    return await source.obtain(caller, () => token)
  } finally {
    await source.close?.()
  }
}

/** A credential that needs no caller: from a secret or the configured services. */
async function checkOwn(auth: ResolvedAuth, context: CheckContext): Promise<CheckedCredential> {
  const { lines, isConnected } = await reachAll(auth, context)
  const isFetched = urlsCalledBy(auth).length > 0
  const line = about(isFetched ? 'exchange' : 'secret', auth.name)
  if (!isConnected) return { lines: [...lines, line.skipped('not tried: no connection')], credential: undefined }
  try {
    const credential = await obtain(auth, ANONYMOUS, context)
    return { lines: isFetched ? [...lines, line.ok('service token obtained')] : lines, credential }
  } catch (error) {
    // An unusable secret has its own line.
    const isTold = !(await hasItsSecrets(auth, context))
    return { lines: isTold ? lines : [...lines, line.thrown(error)], credential: undefined }
  }
}

/** Connects to all services of a config. */
async function reachAll(
  auth: ResolvedAuth,
  context: CheckContext,
): Promise<{ lines: CheckResult[]; isConnected: boolean }> {
  const each = await Promise.all(
    urlsCalledBy(auth).map(({ url, caCertPath }) => reach('exchange', url, caCertPath, context)),
  )
  return { lines: each.flatMap(({ lines }) => lines), isConnected: each.every(({ isConnected }) => isConnected) }
}

/** Connects to a service with the CA certificates of its config. */
async function reach(
  service: Service,
  url: string,
  caCertPath: string | undefined,
  context: CheckContext,
): Promise<{ lines: CheckResult[]; isConnected: boolean }> {
  const lines =
    caCertPath === undefined
      ? []
      : checkFile({ holds: 'certificates', path: caCertPath }, 'caCertPath', context.clock.now())
  const ca = caCertPath === undefined ? undefined : context.obtain.caCertificate(caCertPath)()
  if (caCertPath !== undefined && ca === undefined) return { lines, isConnected: false }
  const connected = await checkConnection(service, url, context, { ca })
  return { lines: [...lines, ...connected.lines], isConnected: connected.isConnected }
}

/** Errors for an invalid token from a token endpoint that accepts the client. */
const REFUSALS_OF_A_TOKEN: ReadonlySet<string> = new Set(['invalid_token', 'exchange_denied'])

async function checkExchange(
  auth: ResolvedAuth,
  caller: AuthenticatedCaller | undefined,
  context: CheckContext,
): Promise<CheckedCredential> {
  const line = about('exchange', auth.name)
  const { lines, isConnected } = await reachAll(auth, context)
  if (!isConnected) return { lines: [...lines, line.skipped('not tried: no connection')], credential: undefined }
  const isReal = caller !== undefined && auth.upstream === undefined
  const audience = upstreamTokenOf(auth)?.ownTokenFor
  const shown = isReal
    ? caller
    : unknownCaller(context.clock.now(), audience === undefined ? {} : { aud: audience, scp: null })
  try {
    const credential = await obtain(
      isReal ? auth : withOwnToken(auth),
      shown,
      context,
      isReal ? context.token : undefined,
    )
    if (isReal) return { lines: [...lines, line.ok('token exchanged')], credential }
    const remedy = 'The token endpoint does not verify subject tokens; do not use it.'
    return {
      lines: [...lines, line.failed('the token endpoint exchanged an invalid token', remedy)],
      credential: undefined,
    }
  } catch (error) {
    if (!isReal && error instanceof Failure && REFUSALS_OF_A_TOKEN.has(error.code)) {
      const clientId = clientsOf(auth)[0]?.clientId
      const client = clientId === undefined ? 'the proxy' : `the client ${clientId}`
      const needs = auth.upstream === undefined ? '--token-file' : 'the session of a logged-in user'
      lines.push(line.ok(`accepts ${client} and rejects an invalid token; a real exchange needs ${needs}`))
    } else lines.push(line.thrown(error))
    return { lines, credential: undefined }
  }
}

/** The same config, for the token of a caller without a login at this proxy. */
const withOwnToken = (auth: ResolvedAuth): ResolvedAuth => {
  const field = upstreamTokenOf(auth)?.field
  // Deleting an optional field keeps the type; TypeScript cannot follow the field's name.
  return {
    ...auth,
    upstream: undefined,
    ...(field === undefined ? {} : { spec: { ...auth.spec, [field]: undefined } }),
  } as ResolvedAuth
}

/** The identity of the process, which signs requests. */
async function checkService(auth: ResolvedAuthOf<'cloudSts'>, context: CheckContext): Promise<CheckedCredential> {
  const { spec } = auth
  const { endpoint } = stsEndpointOf(spec, context.obtain.sts)
  const { lines, isConnected } = await reach('sts', endpoint, spec.caCertPath, context)
  if (isConnected) lines.push(await askSts(auth, endpoint, context))
  const { lines: found, identity } = await checkIdentity(auth, context)
  lines.push(...found)
  return { lines, credential: identity && (await obtain(auth, ANONYMOUS, context)) }
}

async function checkSts(
  auth: ResolvedAuthOf<RoleType>,
  onMatcherError: ResolvedRoute['onMatcherError'],
  caller: AuthenticatedCaller | undefined,
  context: CheckContext,
): Promise<CheckedCredential> {
  const { spec } = auth
  const { endpoint } = stsEndpointOf(spec, context.obtain.sts)
  const { lines, isConnected } = await reach('sts', endpoint, spec.caCertPath, context)
  if (isConnected) lines.push(await askSts(auth, endpoint, context))
  const { lines: found, identity } = isConnected
    ? await checkIdentity(auth, context)
    : { lines: [], identity: undefined }
  lines.push(...found)
  if (caller === undefined || auth.upstream !== undefined) {
    lines.push(about('role', auth.name).skipped('needs --token-file'))
    return { lines, credential: undefined }
  }
  const { choice, refusal, session } = decideFor(
    auth,
    onMatcherError,
    { ...caller, format: caller.format },
    { all: false },
  )
  const role = about('role', auth.name)
  if (refusal !== undefined || choice.roleArn === undefined) {
    const failure = new Failure(refusal ?? 'no_role', choice.reason === undefined ? {} : { detail: choice.reason })
    lines.push(
      role.failed(failureText(failure), `${FAILURES[failure.code].remedy} extauth explain shows each mapping.`),
    )
    return { lines, credential: undefined }
  }
  lines.push(
    role.ok(`${choice.roleArn} as ${session?.name} (by ${choice.by === 'fallback' ? 'fallbackRoleArn' : 'a mapping'})`),
  )
  const assume = about('assume-role', choice.roleArn)
  if (!isConnected) return { lines: [...lines, assume.skipped('not tried: no connection')], credential: undefined }
  if (identity === undefined && !showsCallerToken(spec)) {
    const missing = spec.source?.through === undefined ? 'the identity of the process' : 'the role of the hub'
    return { lines: [...lines, assume.skipped(`not tried: it needs ${missing}, which failed`)], credential: undefined }
  }
  try {
    const credential = await obtain(auth, caller, context, context.token)
    const who = identity === undefined || credential.kind !== 'aws' ? undefined : await identity.who(credential)
    const whose = who === undefined ? '' : ` of ${who}`
    const life = `for ${Math.round(spec.sessionDuration / 60)} min`
    return {
      lines: [...lines, assume.ok(`STS returned credentials${whose} ${life}${acceptedOf(choice.attributes)}`)],
      credential,
    }
  } catch (error) {
    return { lines: [...lines, assume.thrown(error)], credential: undefined }
  }
}

/** Any response counts: it proves an HTTP server and has its time. */
function askSts(auth: ResolvedAuthOf<RoleType>, endpoint: string, context: CheckContext): Promise<CheckResult> {
  const line = about('sts', new URL(endpoint).host)
  const { caCertPath } = auth.spec
  return context.once(JSON.stringify(['sts', endpoint, caCertPath]), async () => {
    const outbound = context.obtain.outbound({
      name: `${auth.name} check`,
      deadlineMs: STEP_MS,
      breaker: false,
      ...(caCertPath === undefined ? {} : { caCert: context.obtain.caCertificate(caCertPath) }),
    })
    try {
      const { status, headers } = await outbound.request({ method: 'GET', url: endpoint })
      context.times.note(`STS ${new URL(endpoint).host}`, headers['date'], context.clock.now(), STS_DIFFERENCE_MS)
      if (status >= 500)
        return line.failed(
          `status ${status}; expected below 500`,
          'Retry later, or check the health of STS in this region.',
        )
      return line.ok('answers')
    } catch (error) {
      return line.thrown(new Failure('sts_unavailable', { detail: 'no response', cause: error }))
    } finally {
      await outbound.close()
    }
  })
}
