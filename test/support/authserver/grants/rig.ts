import type { Claims } from '../../../../src/core/index.ts'
import { shapeOf } from '../../../../src/oauth/index.ts'
import type { Sockets } from '../../sockets.ts'
import { LIMITS, postForm, register, type Rig, type RigOptions, startRig } from '../rig.ts'
import type { Idp } from '../../upstreams/idp.ts'

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const ID_JAG = 'oauth-id-jag+jwt'
export const JOB = { id: 'nightly-report', secret: 'a secret of the nightly report, long enough' }
export const OTHER = { id: 'other-job', secret: 'a secret of the other job, long enough too' }

/** An issuer of assertions that is the identity provider of the rig. */
export const trusting = (idp: Idp, more: object = {}) => ({
  issuerUrl: idp.url,
  caBundleRef: { name: 'idp', key: 'ca' },
  ...more,
})

const client = (id: string, more: object = {}) => ({
  clientId: id,
  clientSecretRef: { name: 'clients', key: id },
  grantTypes: ['client_credentials', JWT_BEARER],
  ...more,
})

/** A server that takes identity assertions of its identity provider, and has two clients that the operator made. */
export const startGrants = (sockets: Sockets, options: RigOptions & { readonly issuer?: object } = {}): Promise<Rig> =>
  startRig(sockets, {
    ...options,
    secrets: { [`clients/${JOB.id}`]: JOB.secret, [`clients/${OTHER.id}`]: OTHER.secret, ...options.secrets },
    spec: (idp) => ({
      limits: LIMITS,
      identityAssertions: { issuers: [trusting(idp, options.issuer)] },
      clients: [client(JOB.id), client(OTHER.id, { scopes: ['mcp:read'], lifetime: '5m' })],
      ...(typeof options.spec === 'function' ? options.spec(idp) : options.spec),
    }),
  })

export const basic = ({ id, secret }: { readonly id: string; readonly secret: string }) => ({
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
})

/** The claims of a right assertion for the job; undefined takes one out. */
export function jagClaims(rig: Rig, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const now = Math.floor(rig.clock.now() / 1_000)
  const claims = {
    iss: rig.idp.url,
    sub: 'user-1',
    aud: rig.issuer,
    client_id: JOB.id,
    resource: rig.resources[0]?.url,
    scope: 'mcp:read mcp:write',
    jti: 'an identifier',
    iat: now,
    exp: now + 300,
    email: 'one@example.com',
    ...more,
  }
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
}

/** A right identity assertion but for `claims` and `header`. */
export const jag = (
  rig: Rig,
  claims: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> => rig.idp.key.sign(jagClaims(rig, claims), { typ: ID_JAG, ...header })

export interface Answered {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

export async function ask(
  rig: Pick<Rig, 'issuer'>,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  const response = await postForm(`${rig.issuer}/oauth/token`, form, headers)
  return { status: response.status, body: (await response.json()) as Readonly<Record<string, unknown>> }
}

/** Shows an assertion as the job does. */
export const show = (rig: Rig, assertion: string, more: Readonly<Record<string, string>> = {}, as = JOB) =>
  ask(rig, { grant_type: JWT_BEARER, assertion, ...more }, basic(as))

/** Claims of an issued token; its signature is verified where it is used. */
export function claimsOf({ body }: Answered): Claims {
  const shape = shapeOf(typeof body.access_token === 'string' ? body.access_token : '')
  if (shape.kind !== 'jwt') throw new Error(JSON.stringify(body))
  return shape.jwt.payload
}

export const registerConfidential = (rig: Rig, more: object = {}) =>
  register(rig, {
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: [JWT_BEARER],
    redirect_uris: [],
    ...more,
  })

/** Why assertions were refused, as the log has it. */
export const causes = ({ log }: Pick<Rig, 'log'>): unknown[] =>
  log.lines
    .map((line) => JSON.parse(line) as { readonly message: string; readonly detail?: string })
    .filter(({ message }) => message === 'assertion rejected')
    .map(({ detail }) => detail)
