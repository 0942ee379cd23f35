import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../src/core/index.ts'
import { createLabFaults, type LabFaults } from '../faults.ts'
import { listenOnLoopback } from '../listen.ts'
import { type IssuedCredentials, verifySigv4 } from '../sigv4-verify.ts'
import { type Assumed, assumeRole, newCredentials, type WebIdentityTrust } from './assume-role.ts'
import { assumeRoleSigned } from './assume-role-signed.ts'
import { type Elements, renderError, renderResult, StsRefusal } from './xml.ts'

export interface LabStsOptions {
  /** Port on loopback; 0 takes a free one. */
  readonly port: number
  readonly trust: WebIdentityTrust
  readonly clock: Clock
  /** Default: a switchboard of its own. */
  readonly faults?: LabFaults
}

export interface LabSts {
  readonly url: string
  readonly faults: LabFaults
  /** Issues role credentials to clients of the metadata service. */
  issue(roleArn: string, sessionName: string, seconds: number): IssuedCredentials
  /** Credentials that it issued and has not revoked, for the verifier of signatures. */
  readonly lookup: (accessKeyId: string) => IssuedCredentials | undefined
  /** How many times a role was asked for since the start; of one role where it is named. */
  calls(roleArn?: string): number
  close(): Promise<void>
}

const ACTIONS: ReadonlySet<string> = new Set(['AssumeRoleWithWebIdentity', 'AssumeRole', 'GetCallerIdentity'])
/** The region of everything in the lab. */
const REGION = 'eu-west-1'
const VERSION = '2011-06-15'
const MAX_BODY_BYTES = 64 * 1024
const MAX_KEPT = 100_000

/**
 * Starts the lab's STS on loopback: AssumeRoleWithWebIdentity, AssumeRole and GetCallerIdentity in the query protocol, with
 * AWS's XML and error codes. It verifies the web identity token against the lab's issuer, signatures against what it issued,
 * and what each role trusts. A demo for trying things out.
 * Throws `PortInUse`.
 */
export async function startLabSts(options: LabStsOptions): Promise<LabSts> {
  const { trust, clock, faults = createLabFaults() } = options
  const issued = new Map<string, IssuedCredentials>()
  const asked: string[] = []
  faults.onRevoking('sts', () => {
    // Issued credentials now count as expired: the backend returns ExpiredTokenException.
    for (const [id, credentials] of issued) issued.set(id, { ...credentials, expiresAtMs: 0 })
  })

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = randomUUID()
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      const { form, body } = await readForm(request)
      const action = form.get('Action') ?? ''
      if (action !== 'GetCallerIdentity') asked.push(form.get('RoleArn') ?? '')
      await faults.pause('sts', gone.signal)
      if (faults.settings.sts === 'throttled') throw new StsRefusal(400, 'Throttling', 'Rate exceeded')
      if (faults.settings.sts === 'broken')
        throw new StsRefusal(503, 'ServiceUnavailable', 'The service is unavailable.')
      const result = await answer(action, form, () => signer(request, body))
      send(response, 200, renderResult(action, result, requestId), requestId)
    } catch (error) {
      const refusal = error instanceof StsRefusal ? error : new StsRefusal(500, 'InternalFailure', 'Internal failure')
      send(response, refusal.status, renderError(refusal, requestId), requestId)
    }
  }

  const keep = (credentials: IssuedCredentials): IssuedCredentials => {
    issued.set(credentials.accessKeyId, credentials)
    const oldest = issued.size > MAX_KEPT ? issued.keys().next().value : undefined
    if (oldest !== undefined) issued.delete(oldest)
    return credentials
  }

  async function answer(action: string, form: URLSearchParams, signedBy: () => IssuedCredentials): Promise<Elements> {
    if (action === 'AssumeRoleWithWebIdentity') {
      const assumed = await assumeRole(form, trust, clock.now())
      keep(assumed.credentials)
      return resultOf(assumed, trust.issuer)
    }
    const caller = signedBy()
    if (action === 'AssumeRole')
      return sessionOf(keep(assumeRoleSigned(form, caller, trust.roles, clock.now()).credentials))
    const { Arn, AssumedRoleId } = assumedRoleUser(caller)
    return { Arn, UserId: AssumedRoleId, Account: caller.roleArn.split(':')[4] ?? '' }
  }

  /** Signer of a request among the holders of issued credentials. */
  function signer(request: IncomingMessage, body: Buffer): IssuedCredentials {
    const lookup = (accessKeyId: string) => issued.get(accessKeyId)
    const { method = '', url = '/', rawHeaders } = request
    const expected = { region: REGION, service: 'sts', nowMs: clock.now(), lookup }
    const verdict = verifySigv4({ method, target: url, headers: rawHeaders, body }, expected)
    if (verdict.ok) return verdict.credentials
    const code = verdict.type.replace(/Exception$/, '').replace('UnrecognizedClient', 'InvalidClientTokenId')
    throw new StsRefusal(verdict.status, code, verdict.message)
  }

  const server = await listenOnLoopback(options.port, (request, response) => void handle(request, response))
  return {
    url: server.url,
    faults,
    issue: (roleArn, sessionName, seconds) =>
      keep(newCredentials(roleArn, sessionName, sessionName, clock.now() + seconds * 1000)),
    lookup: (accessKeyId) => issued.get(accessKeyId),
    calls: (roleArn) => (roleArn === undefined ? asked.length : asked.filter((arn) => arn === roleArn).length),
    close: () => server.close(),
  }
}

async function readForm(request: IncomingMessage): Promise<{ readonly form: URLSearchParams; readonly body: Buffer }> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) throw new StsRefusal(413, 'RequestEntityTooLarge', 'The request is too large.')
    chunks.push(chunk)
  }
  if (request.method !== 'POST' || (request.url ?? '/') !== '/') {
    throw new StsRefusal(404, 'UnknownOperationException', 'There is nothing here.')
  }
  if (request.headers['content-type']?.split(';', 1)[0]?.trim() !== 'application/x-www-form-urlencoded') {
    throw new StsRefusal(400, 'InvalidParameterValue', 'The body must be application/x-www-form-urlencoded.')
  }
  const body = Buffer.concat(chunks)
  const form = new URLSearchParams(body.toString('utf8'))
  if (!ACTIONS.has(form.get('Action') ?? ''))
    throw new StsRefusal(400, 'InvalidAction', 'Could not find this operation.')
  if (form.get('Version') !== VERSION) throw new StsRefusal(400, 'InvalidAction', 'Could not find this version.')
  return { form, body }
}

const resultOf = ({ credentials, audience }: Assumed, issuer: string): Elements => ({
  SubjectFromWebIdentityToken: credentials.subject,
  Audience: audience,
  ...sessionOf(credentials),
  Provider: issuer,
})

function assumedRoleUser({ roleArn, sessionName }: IssuedCredentials) {
  const [, partition, , , account, resource = ''] = roleArn.split(':')
  const roleName = resource.slice(resource.lastIndexOf('/') + 1)
  return {
    Arn: `arn:${partition}:sts::${account}:assumed-role/${roleName}/${sessionName}`,
    AssumedRoleId: `AROALABLABLABLABLABLA:${sessionName}`,
  }
}

function sessionOf(credentials: IssuedCredentials) {
  const { accessKeyId, secretAccessKey, sessionToken, expiresAtMs, sourceIdentity } = credentials
  return {
    AssumedRoleUser: assumedRoleUser(credentials),
    Credentials: {
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      SessionToken: sessionToken,
      Expiration: new Date(expiresAtMs).toISOString().replace(/\.\d{3}Z$/, 'Z'),
    },
    ...(sourceIdentity === undefined ? {} : { SourceIdentity: sourceIdentity }),
  }
}

function send(response: ServerResponse, status: number, xml: string, requestId: string): void {
  response.writeHead(status, {
    'content-type': 'text/xml',
    'content-length': Buffer.byteLength(xml),
    'x-amzn-requestid': requestId,
  })
  response.end(xml)
}
