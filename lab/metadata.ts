import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listenOnLoopback } from './listen.ts'
import { sameText } from './requirements.ts'
import type { IssuedCredentials } from './sigv4-verify.ts'

export interface LabMetadataOptions {
  /** Port on loopback; 0 takes a free one. */
  readonly port: number
  /** Name of the instance's role. */
  readonly roleName: string
  /** Current credentials. */
  readonly credentials: () => Pick<
    IssuedCredentials,
    'accessKeyId' | 'secretAccessKey' | 'sessionToken' | 'expiresAtMs'
  >
  /** Authorization of a container (`AWS_CONTAINER_AUTHORIZATION_TOKEN`, or its file); absent: no container endpoint. */
  readonly containerToken?: string
}

/** Fault instead of a response. */
export type MetadataFault = 'none' | 'throttled' | 'broken' | 'silent'

export interface LabMetadata {
  readonly url: string
  /** `METHOD path status` of each answer. */
  readonly asked: string[]
  fault: MetadataFault
  close(): Promise<void>
}

const TOKEN_PATH = '/latest/api/token'
const CREDENTIALS_PATH = '/latest/meta-data/iam/security-credentials/'
/** Path of the container endpoint, below the URL. */
export const CONTAINER_PATH = '/v1/credentials'
const LONGEST_TTL_SECONDS = 21_600

/**
 * Mock of the metadata service of an instance, version 2 only (a request without its token is 401, one that was
 * forwarded is 403, as AWS does it), and for the credentials endpoint of a container. Throws `PortInUse`.
 */
export async function startLabMetadata(options: LabMetadataOptions): Promise<LabMetadata> {
  const { roleName, credentials, containerToken } = options
  const tokens = new Set<string>()
  const asked: string[] = []

  const answerOf = (request: IncomingMessage): readonly [status: number, body: string] => {
    const { method, url = '/', headers } = request
    if (url === CONTAINER_PATH && containerToken !== undefined) {
      if (method !== 'GET') return [405, '']
      if (!sameText(headers.authorization ?? '', containerToken)) return [401, '{"code":"AccessDenied"}']
      return [200, JSON.stringify(containerBody(credentials()))]
    }
    if (headers['x-forwarded-for'] !== undefined) return [403, '']
    if (url === TOKEN_PATH) {
      const ttl = Number(headers['x-aws-ec2-metadata-token-ttl-seconds'])
      if (method !== 'PUT') return [405, '']
      if (!(Number.isInteger(ttl) && ttl >= 1 && ttl <= LONGEST_TTL_SECONDS)) return [400, '']
      const token = randomBytes(40).toString('base64url')
      tokens.add(token)
      return [200, token]
    }
    const token = headers['x-aws-ec2-metadata-token']
    if (typeof token !== 'string' || !tokens.has(token)) return [401, '']
    if (method !== 'GET') return [405, '']
    if (url === CREDENTIALS_PATH) return [200, roleName]
    if (url === `${CREDENTIALS_PATH}${roleName}`) return [200, JSON.stringify(instanceBody(credentials()))]
    return [404, '']
  }

  const server = await listenOnLoopback(options.port, (request: IncomingMessage, response: ServerResponse) => {
    if (lab.fault === 'silent') return
    const [status, body] =
      lab.fault === 'throttled' ? [429, ''] : lab.fault === 'broken' ? [500, ''] : answerOf(request)
    asked.push(`${request.method} ${request.url} ${status}`)
    response.writeHead(status, { 'content-type': body.startsWith('{') ? 'application/json' : 'text/plain' }).end(body)
  })
  const lab: LabMetadata = { url: server.url, asked, fault: 'none', close: () => server.close() }
  return lab
}

type Shown = ReturnType<LabMetadataOptions['credentials']>

const containerBody = ({ accessKeyId, secretAccessKey, sessionToken, expiresAtMs }: Shown) => ({
  AccessKeyId: accessKeyId,
  SecretAccessKey: secretAccessKey,
  Token: sessionToken,
  Expiration: new Date(expiresAtMs).toISOString().replace(/\.\d{3}Z$/, 'Z'),
})

const instanceBody = (shown: Shown) => ({
  Code: 'Success',
  LastUpdated: '2026-01-01T00:00:00Z',
  Type: 'AWS-HMAC',
  ...containerBody(shown),
})
