import { isLoopbackHost, OutboundError, type Outbound } from '../../../core/index.ts'
import { fileProblem, readBoundedAsync } from '../../../files/index.ts'
import { readJsonObject } from '../../../http/index.ts'
import { CredentialSourceError, type FoundKeys } from './keys.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Milliseconds for one answer of a service that is next door. */
export const NEXT_DOOR_MS = 1_000
/** Bytes of one: credentials have about two kilobytes. */
export const MOST_METADATA_BYTES = 64 * 1024
/** Bytes of a file with the token that a container shows. */
const MOST_TOKEN_BYTES = 64 * 1024

/** Of ECS and of EKS (AWS SDKs and Tools Reference Guide, container credential provider). */
const CONTAINER_HOSTS: ReadonlySet<string> = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'])

/**
 * The credentials endpoint of a container: where the environment says, over HTTP only next door, with the token of the
 * environment, of its file first. Throws `CredentialSourceError` and `OutboundError`.
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
    throw new CredentialSourceError('its address is neither HTTPS nor next door')
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
/** Goes into a path. */
const ROLE_NAME = /^[\w+=,.@-]{1,128}$/
/** Goes into a header. */
const TOKEN = /^[\x21-\x7e]{1,4096}$/

/**
 * The metadata service of an instance, version 2 only: a token, the name of the role, its credentials. `endpoint` is its
 * origin. Throws `CredentialSourceError` and `OutboundError`.
 */
export async function instanceKeys(endpoint: string, outbound: Outbound): Promise<FoundKeys> {
  const base = URL.canParse(endpoint) ? new URL(endpoint).origin : undefined
  if (base === undefined) throw new CredentialSourceError('its address is no URL')
  const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': TOKEN_SECONDS }
  const token = (await ask(outbound, { method: 'PUT', url: base + TOKEN_PATH, headers: ttl })).toString('utf8')
  if (!TOKEN.test(token)) throw new CredentialSourceError('it gave no usable token')
  const headers = { 'x-aws-ec2-metadata-token': token }
  const role = (await ask(outbound, { method: 'GET', url: base + ROLES_PATH, headers })).toString('utf8').trim()
  if (!ROLE_NAME.test(role)) throw new CredentialSourceError('it named no role')
  return keysIn(await ask(outbound, { method: 'GET', url: base + ROLES_PATH + role, headers }))
}

const ENDPOINTS: Readonly<Record<string, string>> = {
  ipv4: 'http://169.254.169.254',
  ipv6: 'http://[fd00:ec2::254]',
}

/** Where the metadata service of an instance is: as the environment says, then the profile of the AWS configuration files. */
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
    throw new CredentialSourceError(`it gave no usable credentials (${name})`)
  }
  const keys = {
    accessKeyId: text('AccessKeyId'),
    secretAccessKey: text('SecretAccessKey'),
    sessionToken: text('Token'),
    expiration: new Date(text('Expiration')),
  }
  if (Number.isNaN(keys.expiration.getTime()))
    throw new CredentialSourceError('it gave no usable credentials (Expiration)')
  return keys
}

/** Why a metadata service gave nothing, in our own words. */
export function whyNothing(error: unknown): string | undefined {
  if (error instanceof CredentialSourceError) return error.message
  if (!(error instanceof OutboundError)) return undefined
  if (error.kind === 'timeout') return `no answer within ${NEXT_DOOR_MS / 1000} s`
  return error.kind === 'too_large' ? `an answer of more than ${MOST_METADATA_BYTES} bytes` : error.kind
}
