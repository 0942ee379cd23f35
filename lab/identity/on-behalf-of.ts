import { randomUUID } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { Clock } from '../../src/core/index.ts'
import type { Clients, LabClient } from './clients.ts'
import type { Form } from './oauth-error.ts'
import type { Tokens } from './tokens.ts'

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** The one tenant of the lab, in URLs as Microsoft Entra ID has them. */
export const LAB_TENANT = 'lab.example'

/** A token lives this long at most, in seconds, and never longer than the one that was shown. */
const MAX_TTL_SECONDS = 300
/** The claims challenge for a login with a password only: a second factor. */
const CLAIMS = JSON.stringify({ access_token: { amr: { essential: true, values: ['mfa'] } } })

/** An answer of Entra ID, an error's with its number. */
export interface EntraAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

export interface OnBehalfOfDeps {
  readonly clients: Clients
  readonly tokens: Tokens
  /** The claims of a token of any issuer here that is good now. */
  readonly verify: (token: string) => Promise<JWTPayload | undefined>
  readonly clock: Clock
  /** Subjects for whom consent is missing. */
  readonly deniedSubjects: readonly string[]
}

/**
 * Answers an on-behalf-of request as strictly as Entra ID does: an authenticated client, its credential in the body; a user's
 * token that was issued for this very client; one resource with `/.default` or named scopes. A token whose `amr` lacks `mfa`
 * is refused with a claims challenge.
 */
export async function onBehalfOf(tenant: string, form: Form, deps: OnBehalfOfDeps): Promise<EntraAnswer> {
  if (tenant !== LAB_TENANT) return refused(90002, 'invalid_request', `Tenant '${tenant}' not found.`)
  const client = clientOf(form, deps.clients)
  if ('status' in client) return client
  if (form.get('grant_type') !== JWT_BEARER)
    return refused(70003, 'unsupported_grant_type', 'The app requested an unsupported grant type.')
  if (form.get('requested_token_use') !== 'on_behalf_of')
    return refused(90014, 'invalid_request', "The required field 'requested_token_use' is missing.")
  const assertion = form.get('assertion')
  if (assertion === undefined) return refused(90014, 'invalid_request', "The required field 'assertion' is missing.")
  const resource = resourceOf(form.get('scope') ?? '')
  if (resource === undefined) return refused(70011, 'invalid_scope', 'The provided value for scope is not valid.')
  if (client.audiences?.includes(resource) !== true)
    return refused(500011, 'invalid_resource', `The resource principal named ${resource} was not found in the tenant.`)

  const subject = await deps.verify(assertion)
  if (subject?.sub === undefined)
    return refused(500133, 'invalid_grant', 'Assertion is not within its valid time range, or not signed by us.')
  const audiences = new Set([subject.aud ?? []].flat())
  if (!audiences.has(client.id) && !audiences.has(`api://${client.id}`))
    return refused(
      500131,
      'invalid_grant',
      'Assertion audience does not match the Client app presenting the assertion.',
    )
  const { idtyp, scp, amr } = subject
  if (idtyp === 'app' || typeof scp !== 'string')
    return refused(7000114, 'invalid_grant', 'Application is not allowed to make application on-behalf-of calls.')
  if (deps.deniedSubjects.includes(subject.sub))
    return refused(65001, 'invalid_grant', 'The user or administrator has not consented to use the application.')
  if (Array.isArray(amr) && !amr.includes('mfa'))
    return refused(50076, 'interaction_required', 'You must use multi-factor authentication.', { claims: CLAIMS })

  const left = Math.floor((subject.exp ?? 0) - deps.clock.now() / 1000)
  const ttlSeconds = Math.max(1, Math.min(MAX_TTL_SECONDS, left))
  const accessToken = await deps.tokens.issue({
    subject: subject.sub,
    audience: [resource],
    ttlSeconds,
    exchanged: true,
    claims: { scp: 'mcp.tools', azp: client.id },
  })
  const body = {
    token_type: 'Bearer',
    scope: `${resource}/mcp.tools`,
    expires_in: ttlSeconds,
    access_token: accessToken,
  }
  return { status: 200, body: { ...body, ext_expires_in: ttlSeconds } }
}

/** The client with its secret in the body; HTTP Basic is not looked at. */
function clientOf(form: Form, clients: Clients): LabClient | EntraAnswer {
  const id = form.get('client_id') ?? ''
  const known = clients.find(id)
  if (known?.secret === undefined || !known.may.includes('on_behalf_of'))
    return refused(700016, 'unauthorized_client', `Application with identifier '${id}' was not found in the directory.`)
  const secret = form.get('client_secret')
  if (secret === undefined)
    return refused(7000218, 'invalid_client', "The request body must contain 'client_assertion' or 'client_secret'.", {
      status: 401,
    })
  if (!known.secret.equals(secret))
    return refused(7000215, 'invalid_client', 'Invalid client secret provided.', { status: 401 })
  return known
}

/** The one resource that all scopes are of. */
function resourceOf(scope: string): string | undefined {
  const resources = scope.split(' ').map((one) => one.slice(0, Math.max(0, one.lastIndexOf('/'))))
  return new Set(resources).size === 1 && resources[0] !== '' ? resources[0] : undefined
}

function refused(
  code: number,
  error: string,
  text: string,
  { status = 400, ...more }: { readonly status?: number; readonly claims?: string } = {},
): EntraAnswer {
  const ids = { trace_id: randomUUID(), correlation_id: randomUUID() }
  const description = `AADSTS${code}: ${text} Trace ID: ${ids.trace_id} Correlation ID: ${ids.correlation_id}`
  return { status, body: { error, error_description: description, error_codes: [code], ...ids, ...more } }
}
