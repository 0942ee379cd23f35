import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../src/core/index.ts'
import { createLabFaults, type LabFaults } from '../faults.ts'
import { listenOnLoopback } from '../listen.ts'
import type { IssuedCredentials } from '../sigv4-verify.ts'
import { type Assumed, assumeRole, type WebIdentityTrust } from './assume-role.ts'
import { renderError, renderResult, StsRefusal } from './xml.ts'

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
  /** Credentials that it issued and has not taken back, for the verifier of signatures. */
  readonly lookup: (accessKeyId: string) => IssuedCredentials | undefined
  /** How many times a role was asked for since the start; of one role where it is named. */
  calls(roleArn?: string): number
  close(): Promise<void>
}

const ACTION = 'AssumeRoleWithWebIdentity'
const VERSION = '2011-06-15'
const MAX_BODY_BYTES = 64 * 1024
const MAX_KEPT = 100_000

/**
 * Starts the lab's STS on loopback: AssumeRoleWithWebIdentity in the query protocol, with AWS's XML and error codes. It
 * verifies the web identity token against the lab's issuer and what each role trusts. A stand-in for trying things out.
 * Throws `PortInUse`.
 */
export async function startLabSts(options: LabStsOptions): Promise<LabSts> {
  const { trust, clock, faults = createLabFaults() } = options
  const issued = new Map<string, IssuedCredentials>()
  const asked: string[] = []
  faults.onRevoking('sts', () => {
    // What was issued is now as good as expired: the backend says ExpiredTokenException.
    for (const [id, credentials] of issued) issued.set(id, { ...credentials, expiresAtMs: 0 })
  })

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = randomUUID()
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      const form = await readForm(request)
      asked.push(form.get('RoleArn') ?? '')
      await faults.pause('sts', gone.signal)
      if (faults.settings.sts === 'throttled') throw new StsRefusal(400, 'Throttling', 'Rate exceeded')
      if (faults.settings.sts === 'broken')
        throw new StsRefusal(503, 'ServiceUnavailable', 'The service is unavailable.')
      const assumed = await assumeRole(form, trust, clock.now())
      issued.set(assumed.credentials.accessKeyId, assumed.credentials)
      const oldest = issued.size > MAX_KEPT ? issued.keys().next().value : undefined
      if (oldest !== undefined) issued.delete(oldest)
      send(response, 200, renderResult(ACTION, resultOf(assumed, trust.issuer), requestId), requestId)
    } catch (error) {
      const refusal = error instanceof StsRefusal ? error : new StsRefusal(500, 'InternalFailure', 'Internal failure')
      send(response, refusal.status, renderError(refusal, requestId), requestId)
    }
  }

  const server = await listenOnLoopback(options.port, (request, response) => void handle(request, response))
  return {
    url: server.url,
    faults,
    lookup: (accessKeyId) => issued.get(accessKeyId),
    calls: (roleArn) => (roleArn === undefined ? asked.length : asked.filter((arn) => arn === roleArn).length),
    close: () => server.close(),
  }
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
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
  const form = new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
  if (form.get('Action') !== ACTION) throw new StsRefusal(400, 'InvalidAction', 'Could not find this operation.')
  if (form.get('Version') !== VERSION) throw new StsRefusal(400, 'InvalidAction', 'Could not find this version.')
  return form
}

function resultOf({ credentials, audience }: Assumed, issuer: string) {
  const { roleArn, sessionName, subject, accessKeyId, secretAccessKey, sessionToken, expiresAtMs } = credentials
  const [, partition, , , account, resource = ''] = roleArn.split(':')
  const roleName = resource.slice(resource.lastIndexOf('/') + 1)
  return {
    SubjectFromWebIdentityToken: subject,
    Audience: audience,
    AssumedRoleUser: {
      Arn: `arn:${partition}:sts::${account}:assumed-role/${roleName}/${sessionName}`,
      AssumedRoleId: `AROALABLABLABLABLABLA:${sessionName}`,
    },
    Credentials: {
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      SessionToken: sessionToken,
      Expiration: new Date(expiresAtMs).toISOString().replace(/\.\d{3}Z$/, 'Z'),
    },
    Provider: issuer,
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
