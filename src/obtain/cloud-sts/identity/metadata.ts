import { isLoopbackHost, OutboundError, type Outbound } from '../../../core/index.ts'
import { fileProblem, readBoundedAsync } from '../../../files/index.ts'
import { readJsonObject } from '../../../http/index.ts'
import { CredentialSourceError, type FoundKeys } from './keys.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Response deadline of a link-local service, in milliseconds. */
export const NEXT_DOOR_MS = 1_000
/** Response limit in bytes: credentials take about two kilobytes. */
export const MOST_METADATA_BYTES = 64 * 1024
/** Size limit of a container's token file in bytes. */
const MOST_TOKEN_BYTES = 64 * 1024

/** Of ECS and of EKS (AWS SDKs and Tools Reference Guide, container credential provider). */
const CONTAINER_HOSTS: ReadonlySet<string> = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'])

/**
 * The credentials endpoint of a container, from the environment. Plain HTTP is allowed only for local addresses.
 * Sends the token of the environment, preferably from its file. Throws `CredentialSourceError` and `OutboundError`.
 */
export async function containerKeys(env: Env, outbound: Outbound): Promise<FoundKeys> {
  const url = containerUrl(env)
  const token = await containerToken(env)
  const headers = token === undefined ? {} : { authorization: token }
  return keysIn(await ask(outbound, { method: 'GET', url, headers }))
}

function containerUrl(env: Env): string {
  if (!env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'] && !env['AWS_CONTAINER_CREDENTIALS_FULL_URI'])
    throw new CredentialSourceError(
      'a token for it is set (AWS_CONTAINER_AUTHORIZATION_TOKEN or AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE); expected AWS_CONTAINER_CREDENTIALS_FULL_URI as well',
    )
  const relative = env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']
  const text = relative ? `http://169.254.170.2${relative}` : (env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] ?? '')
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isNear = url?.protocol === 'http:' && (isLoopbackHost(url.hostname) || CONTAINER_HOSTS.has(url.hostname))
  if (url === undefined || !(isNear || url.protocol === 'https:'))
    throw new CredentialSourceError('its address is neither HTTPS nor local')
  return url.href
}

async function containerToken(env: Env): Promise<string | undefined> {
  const file = env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']
  if (!file) return env['AWS_CONTAINER_AUTHORIZATION_TOKEN'] || undefined
  try {
    return (await readBoundedAsync(file, MOST_TOKEN_BYTES)).toString('utf8')
  } catch (error) {
    throw new CredentialSourceError(
      `its token file ${JSON.stringify(file)} (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE) is ${fileProblem(error)}`,
    )
  }
}

const TOKEN_PATH = '/latest/api/token'
const ROLES_PATH = '/latest/meta-data/iam/security-credentials/'
const TOKEN_SECONDS = '21600'
/** Used in a path. */
const ROLE_NAME = /^[\w+=,.@-]{1,128}$/
/** Used in a header. */
const TOKEN = /^[\x21-\x7e]{1,4096}$/

/**
 * The instance metadata service, version 2 only: token, role name, credentials. `endpoint` is its origin. Throws
 * `CredentialSourceError` and `OutboundError`.
 */
export async function instanceKeys(endpoint: string, outbound: Outbound): Promise<FoundKeys> {
  const base = URL.canParse(endpoint) ? new URL(endpoint).origin : undefined
  if (base === undefined) throw new CredentialSourceError('its address is not a URL')
  const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': TOKEN_SECONDS }
  const token = (await ask(outbound, { method: 'PUT', url: base + TOKEN_PATH, headers: ttl })).toString('utf8')
  if (!TOKEN.test(token)) throw new CredentialSourceError('it returned no valid token')
  const headers = { 'x-aws-ec2-metadata-token': token }
  const role = (await ask(outbound, { method: 'GET', url: base + ROLES_PATH, headers })).toString('utf8').trim()
  if (!ROLE_NAME.test(role)) throw new CredentialSourceError('it returned no role name')
  return keysIn(await ask(outbound, { method: 'GET', url: base + ROLES_PATH + role, headers }))
}

const ENDPOINTS: Readonly<Record<string, string>> = {
  ipv4: 'http://169.254.169.254',
  ipv6: 'http://[fd00:ec2::254]',
}

/**
 * The endpoint of the instance metadata service, from the environment, else from the profile of the AWS configuration
 * files.
 */
export function instanceEndpoint(env: Env, profile: Env): string {
  const of = (variable: string, field: string) => env[variable] || profile[field] || undefined
  const mode = of('AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE', 'ec2_metadata_service_endpoint_mode') ?? 'IPv4'
  const usual = ENDPOINTS[mode.toLowerCase()]
  const named = of('AWS_EC2_METADATA_SERVICE_ENDPOINT', 'ec2_metadata_service_endpoint') ?? usual
  if (named === undefined) throw new CredentialSourceError('its mode is neither IPv4 nor IPv6')
  return named
}

async function ask(outbound: Outbound, request: Parameters<Outbound['request']>[0]): Promise<Buffer> {
  const { status, body } = await outbound.request(request)
  if (status < 200 || status >= 300) throw new CredentialSourceError(`it answered ${status}`)
  return body
}

function keysIn(body: Buffer): FoundKeys {
  const fields = readJsonObject(body) ?? {}
  const text = (name: string): string => {
    const value = fields[name]
    if (typeof value === 'string' && value !== '') return value
    throw new CredentialSourceError(`it returned no valid credentials (${name})`)
  }
  const keys = {
    accessKeyId: text('AccessKeyId'),
    secretAccessKey: text('SecretAccessKey'),
    sessionToken: text('Token'),
    expiration: new Date(text('Expiration')),
  }
  if (Number.isNaN(keys.expiration.getTime()))
    throw new CredentialSourceError('it returned no valid credentials (Expiration)')
  return keys
}

/** Why a metadata service returned nothing, without external text. */
export function whyNothing(error: unknown): string | undefined {
  if (error instanceof CredentialSourceError) return error.message
  if (!(error instanceof OutboundError)) return undefined
  if (error.kind === 'timeout') return `no response within ${NEXT_DOOR_MS / 1000} s`
  return error.kind === 'too_large' ? `a response of more than ${MOST_METADATA_BYTES} bytes` : error.kind
}
