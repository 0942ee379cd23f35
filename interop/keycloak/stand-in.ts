import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { listenOnLoopback } from '../../lab/listen.ts'
import type { Authority } from './certificates.ts'
import { visit } from './visit.ts'

type Claims = Readonly<Record<string, unknown>>

/** Services that Keycloak does not have: another issuer that it trusts, and foreign paths. */
export interface StandIn {
  readonly url: string
  /** A token of this issuer that is valid for five minutes; `forged` is signed by a key that it does not publish. */
  mint(claims: Claims, how?: { readonly typ?: string; readonly forged?: boolean }): Promise<string>
  /** Forms that came for Keycloak's token endpoint, the last one at the end. */
  readonly forms: readonly URLSearchParams[]
  close(): Promise<void>
}

const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * Serves on TLS: discovery and keys of an issuer; identity assertions for whom the last segment of the path says (`forged`
 * is alice, signed by a wrong key); and, at every other path, the token endpoint of `realm`, whose forms are kept.
 */
export async function startStandIn(authority: Authority): Promise<StandIn & { serves(realm: string): void }> {
  const [own, foreign] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')])
  const jwks = { keys: [{ ...(await exportJWK(own.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] }
  const pair = authority.issue('stand-in', { subject: '/CN=stand-in', names: 'IP:127.0.0.1' })
  const forms: URLSearchParams[] = []
  let realm = ''

  const mint: StandIn['mint'] = (claims, { typ = 'JWT', forged = false } = {}) => {
    const now = Math.floor(Date.now() / 1_000)
    return new SignJWT({ iss: listening.url, jti: randomUUID(), iat: now, exp: now + 290, ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'one', typ })
      .sign(forged ? foreign.privateKey : own.privateKey)
  }
  const assertion = async (whose: string, form: URLSearchParams) => {
    const asked = Object.fromEntries([...form].filter(([name]) => name === 'resource' || name === 'scope'))
    const forged = whose === 'forged'
    const said = { sub: forged ? 'alice-there' : whose, aud: form.get('audience'), client_id: 'mcp-extauth-grant' }
    const token = await mint({ ...said, ...asked }, { typ: 'oauth-id-jag+jwt', forged })
    return { access_token: token, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 290 }
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(request.url ?? '', listening.url)
    const answer = (status: number, body: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    if (pathname === '/keys') return void answer(200, JSON.stringify(jwks))
    if (pathname === '/.well-known/openid-configuration') {
      const endpoints = {
        authorization_endpoint: `${listening.url}/authorize`,
        token_endpoint: `${listening.url}/token`,
      }
      const metadata = { issuer: listening.url, jwks_uri: `${listening.url}/keys`, ...endpoints }
      return void answer(200, JSON.stringify(metadata))
    }
    const text = await bodyOf(request)
    const form = new URLSearchParams(text)
    const [, whose] = /^\/id-jag\/(.+)$/.exec(pathname) ?? []
    if (whose !== undefined) return void answer(200, JSON.stringify(await assertion(whose, form)))
    forms.push(form)
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const { status, body } = await visit(
      `${realm}/protocol/openid-connect/token`,
      { ca: authority.pem, headers: { ...headers, ...authorizationOf(request) } },
      text,
    )
    answer(status, body)
  }
  const listening = await listenOnLoopback(
    0,
    (request, response) => {
      serve(request, response).catch((error: unknown) => response.destroy(error as Error))
    },
    { cert: readFileSync(pair.certificate), key: readFileSync(pair.key) },
  )
  return { url: listening.url, mint, forms, serves: (issuer) => void (realm = issuer), close: () => listening.close() }
}

const authorizationOf = ({ headers: { authorization } }: IncomingMessage): { authorization?: string } =>
  authorization === undefined ? {} : { authorization }
