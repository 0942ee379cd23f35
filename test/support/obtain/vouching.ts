import { type IncomingMessage, request as ask, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { decodeJwt } from 'jose'
import type { Caller } from '../../../src/core/index.ts'
import { once } from '../../../src/fields/index.ts'
import { xaa } from '../../../src/resources/on-behalf/xaa.ts'
import { START_MS } from '../ports.ts'
import { showing, tokenOf } from '../shown-tokens.ts'
import { asserted, granted, jag, TARGET } from './xaa-tokens.ts'

const DAYS = 10 * 86_400

/** An identity provider that issues the assertion for `xaaSpec` to any client; it names the token. */
export const vouching = (request: IncomingMessage, response: ServerResponse): void => {
  let form = ''
  request.on('data', (chunk: Buffer) => void (form += chunk.toString()))
  request.on('end', () => {
    const of = new URLSearchParams(form).get('subject_token')
    const assertion = jag({ client_id: 'us', resource: undefined, exp: START_MS / 1_000 + DAYS, of })
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(asserted(assertion, { expires_in: DAYS })))
  })
}

/** An identity provider that replaces each token of `tokenUrl` by an assertion that names it. */
export const vouchingAs = (tokenUrl: string) => (request: IncomingMessage, response: ServerResponse) => {
  const { 'content-type': type, authorization = '' } = request.headers
  const asked = ask(tokenUrl, { method: 'POST', headers: { 'content-type': type, authorization } }, (answered) => {
    void text(answered).then((body) => {
      const { 'content-type': of = '', 'retry-after': after } = answered.headers
      const head = { 'content-type': of, ...(after === undefined ? {} : { 'retry-after': after }) }
      response.writeHead(answered.statusCode ?? 0, head)
      if (answered.statusCode !== 200) return response.end(body)
      const { access_token: given, expires_in: seconds } = JSON.parse(body) as Record<string, unknown>
      const assertion = jag({ client_id: 'us', resource: undefined, exp: START_MS / 1_000 + DAYS, given })
      return response.end(JSON.stringify(asserted(assertion, { expires_in: seconds })))
    })
  })
  asked.once('error', () => response.socket?.destroy())
  response.once('close', () => asked.destroy())
  request.pipe(asked)
}

/** A server that gives for such an assertion the token that it speaks of. */
export const redeeming = (request: IncomingMessage, response: ServerResponse): void => {
  void text(request).then((form) => {
    const { given = '' } = decodeJwt<{ given?: string }>(new URLSearchParams(form).get('assertion') ?? '')
    response.writeHead(200, { 'content-type': 'application/json' })
    return response.end(JSON.stringify(granted(given)))
  })
}

/** The owner of the token presented to a token endpoint, directly or in an assertion; empty without an owner. */
export function shownIn(form: readonly (readonly [string, string])[]): string {
  const {
    subject_token: token,
    assertion,
    requested_token_use: use,
  } = Object.fromEntries(form) as Record<string, string | undefined>
  if (token !== undefined || assertion === undefined) return token ?? ''
  // For on-behalf-of the assertion is the token; an identity assertion names its owner.
  return use === 'on_behalf_of' ? assertion : (decodeJwt<{ of?: string }>(assertion).of ?? '')
}

/** The caller with an ID token that is for us, unless it says for whom it is. */
export const withIdToken = (caller: Caller): Caller =>
  caller.kind === 'anonymous'
    ? caller
    : showing({ ...caller, claims: { aud: 'us', ...caller.claims, scp: null } }, tokenOf(caller))

// Making a schema takes longer than using it.
const schema = once(xaa)

/** Settings of other types' single token endpoint, for the target. */
export function xaaSpec(
  { tokenUrl, clientId, clientSecretRef, clientAuth, caCertPath }: Readonly<Record<string, unknown>>,
  idpTokenUrl: string,
): ReturnType<ReturnType<typeof xaa>['parse']> {
  const parsed = schema().parse({
    idpTokenUrl: 'https://idp.example/token',
    idpClientId: 'us',
    targetTokenUrl: tokenUrl,
    targetClientId: clientId ?? (clientAuth === undefined ? 'us' : undefined),
    targetClientSecretRef: clientSecretRef,
    targetClientAuth: clientAuth,
    targetCaCertPath: caCertPath,
    targetAudience: TARGET,
  })
  // Plain http, which the schema refuses.
  return { ...parsed, idpTokenUrl }
}
