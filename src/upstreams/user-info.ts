import type { Claims, ClaimValue, Clock, OutboundResponse, Secret } from '../core/index.ts'
import { valueAt } from '../oauth/index.ts'
import type { UserInfo } from '../resources/index.ts'
import { type Connections, okJson, send, unusable } from './connection.ts'
import { identityText } from './identity-text.ts'

/** The user-info request; only `endpointUrl` when discovered. */
export type UserInfoRequest = Pick<UserInfo, 'endpointUrl'> & Partial<UserInfo>

/** The user returned by the user-info endpoint. */
export interface UserInfoAnswer {
  /** Undefined when no subject field has a value. */
  readonly subject: string | undefined
  /** The whole response, with `sub`, `name` and `email` by the field mapping. */
  readonly claims: Claims
}

const WHERE = 'user-info endpoint'
const STANDARD = { subjectFields: ['sub'], nameFields: ['name'], emailFields: ['email'] }

/** The first field with a value, and its name (specification, `fieldMapping`). */
function find(
  answer: Claims,
  fields: readonly string[],
): { readonly text: string; readonly field: string } | undefined {
  for (const field of fields) {
    const text = identityText(valueAt(answer, field), WHERE)
    if (text !== undefined) return { text, field }
  }
  return undefined
}

function read(answer: Claims, fields: NonNullable<UserInfo['fieldMapping']>): UserInfoAnswer {
  const subject = find(answer, fields.subjectFields)
  const name = find(answer, fields.nameFields)
  const email = find(answer, fields.emailFields)
  const claims = Object.assign(Object.create(null) as Record<string, ClaimValue>, answer)
  const found = { sub: subject, name, email }
  for (const claim of ['sub', 'name', 'email'] as const) {
    const text = found[claim]?.text
    if (text === undefined) delete claims[claim]
    else claims[claim] = text
  }
  // `email_verified` refers to the field `email` only.
  if (email?.field !== 'email') delete claims['email_verified']
  return { subject: subject?.text, claims: Object.freeze(claims) }
}

/**
 * Fetches the user of an access token (OpenID Connect Core §5.3, specification `userInfo`). Throws
 * `identity_provider_unavailable` and `identity_provider_error`.
 */
export async function fetchUserInfo(
  request: UserInfoRequest,
  accessToken: Secret,
  { userInfo }: Pick<Connections, 'userInfo'>,
  clock: Clock,
): Promise<UserInfoAnswer> {
  const response = await askUserInfo(request, accessToken, { userInfo })
  return read(
    okJson(response, WHERE, { url: request.endpointUrl, nowMs: clock.now() }),
    request.fieldMapping ?? STANDARD,
  )
}

/** Whether the endpoint accepts the token. Throws the errors of `send`, and `identity_provider_error`. */
export async function acceptsToken(
  request: UserInfoRequest,
  accessToken: Secret,
  connections: Pick<Connections, 'userInfo'>,
): Promise<boolean> {
  const { status } = await askUserInfo(request, accessToken, connections)
  if (status === 401 || status === 403) return false
  if (status >= 200 && status < 300) return true
  throw unusable(`${WHERE}: status ${status}`)
}

/** The response with any status. Throws the errors of `send`. */
export function askUserInfo(
  { endpointUrl, httpMethod = 'GET', additionalHeaders }: UserInfoRequest,
  accessToken: Secret,
  { userInfo }: Pick<Connections, 'userInfo'>,
): Promise<OutboundResponse> {
  return send(
    userInfo,
    {
      method: httpMethod,
      url: endpointUrl,
      headers: { ...lowerCased(additionalHeaders ?? {}), authorization: `Bearer ${accessToken.reveal()}` },
      ...(httpMethod === 'POST' ? { body: '' } : {}),
    },
    WHERE,
  )
}

/** Configured headers replace the defaults; `authorization` is never replaced. */
function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  const lower: Record<string, string> = { accept: 'application/json', 'user-agent': 'mcp-extauth' }
  for (const [name, value] of Object.entries(headers)) lower[name.toLowerCase()] = value
  return lower
}
