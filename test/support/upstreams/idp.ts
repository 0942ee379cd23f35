import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createHash, randomBytes } from 'node:crypto'
import type { TLSSocket, TlsOptions } from 'node:tls'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { START_MS } from '../ports.ts'
import type { Sockets } from '../sockets.ts'
import { TLS } from '../tls.ts'

/** A response of the identity provider. */
export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text as it is, anything else as JSON. */
  readonly body?: unknown
  /** Nothing at all is answered: the connection is cut. */
  readonly cut?: boolean
  /** Answered only when this has resolved. */
  readonly after?: Promise<unknown>
}

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly query: URLSearchParams
  readonly form: Readonly<Record<string, string>>
  /** Common name of the certificate that was shown in TLS. */
  readonly shown: string | undefined
}

const answerOf = (
  answer: Answer | ((asked: Asked) => Answer | undefined) | undefined,
  asked: Asked,
): Answer | undefined => (typeof answer === 'function' ? answer(asked) : answer)

export const SUBJECT = 'user-1'
export const ACCESS = 'access-token-of-user-1'
export const REFRESH = 'refresh-token-of-user-1'

export interface SigningKey {
  readonly jwk: JWK
  sign(claims: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>): Promise<string>
}

export async function createKey(alg = 'RS256', kid = randomBytes(4).toString('hex')): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg)
  const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
  return {
    jwk,
    sign: (claims, header = {}) =>
      new SignJWT({ ...claims }).setProtectedHeader({ alg, kid, ...header }).sign(privateKey),
  }
}

export const atHash = (token: string, bits = 256): string => {
  const digest = createHash(`sha${bits}`).update(token).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

// Making one takes a while, and they are all alike.
let known: Promise<SigningKey> | undefined

/** An identity provider on TLS whose every answer a test can replace; what is not replaced is right. `tls` is put over its own. */
export async function startIdp(sockets: Sockets, tls: TlsOptions = {}) {
  const key = await (known ??= createKey())
  const asked: Asked[] = []
  const idp = {
    url: '',
    key,
    asked,
    keys: [key.jwk] as unknown[],
    /** Members that are put over those of the discovery document. */
    metadata: {} as Record<string, unknown>,
    discovery: undefined as Answer | undefined,
    jwks: undefined as Answer | undefined,
    /** Claims put over those of the ID token; undefined takes one out. */
    claims: {} as Record<string, unknown>,
    /** Members put over those of the token response. */
    tokens: {} as Record<string, unknown>,
    token: undefined as Answer | ((asked: Asked) => Answer | undefined) | undefined,
    user: { sub: SUBJECT, name: 'User One', email: 'one@example.com' } as Record<string, unknown>,
    userInfo: undefined as Answer | undefined,
    revocation: undefined as Answer | ((asked: Asked) => Answer | undefined) | undefined,
    introspection: undefined as Answer | ((asked: Asked) => Answer | undefined) | undefined,
    nonce: 'nonce-of-the-leg',
    /** Codes that were given to browsers, with the nonce of the request. */
    codes: new Map<string, string>(),
    /** How often a path was asked for. */
    count: (path: string) => asked.filter((entry) => entry.path === path).length,
    idToken: (claims: Readonly<Record<string, unknown>> = {}) => key.sign(idp.idClaims(claims)),
    idClaims: (claims: Readonly<Record<string, unknown>> = {}) => ({
      iss: idp.url,
      sub: SUBJECT,
      aud: 'us',
      exp: START_MS / 1000 + 600,
      iat: START_MS / 1000,
      nonce: idp.nonce,
      at_hash: atHash(ACCESS),
      name: 'User One',
      email: 'one@example.com',
      ...claims,
    }),
  }

  /** The user's page: the user name, and the callback link. */
  const page = (query: URLSearchParams): Answer => {
    const code = `code-of-a-browser-${idp.codes.size}`
    idp.codes.set(code, query.get('nonce') ?? '')
    const back = (parameters: Record<string, string>) => {
      const url = new URL(query.get('redirect_uri') ?? '')
      const all = { ...parameters, state: query.get('state') ?? '', iss: idp.url }
      for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value)
      return url.href.replaceAll('&', '&amp;')
    }
    if (query.get('response_mode') === 'form_post') {
      const fields = Object.entries({ code, state: query.get('state') ?? '', iss: idp.url, id_token: 'x' })
      const inputs = fields.map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`)
      const form = `<form method="post" action="${query.get('redirect_uri')}">${inputs.join('')}<button id="in">Sign in</button></form>`
      return { headers: { 'content-type': 'text/html' }, body: `<!doctype html><title>Upstream</title>${form}` }
    }
    const body = `<!doctype html><title>Upstream</title><p>Sign in as user-1?
      <a id="in" href="${back({ code })}">Sign in</a> <a id="no" href="${back({ error: 'access_denied' })}">No</a>`
    return { headers: { 'content-type': 'text/html' }, body }
  }

  const right = async ({ path, form, query }: Asked): Promise<Answer> => {
    if (path === '/authorize') return page(query)
    if (path === '/.well-known/openid-configuration') {
      const metadata = {
        issuer: idp.url,
        authorization_endpoint: `${idp.url}/authorize?tenant=a`,
        token_endpoint: `${idp.url}/token`,
        jwks_uri: `${idp.url}/jwks`,
        userinfo_endpoint: `${idp.url}/userinfo`,
        id_token_signing_alg_values_supported: ['RS256', 'ES256', 'EdDSA'],
        authorization_response_iss_parameter_supported: true,
        ...idp.metadata,
      }
      return { body: metadata }
    }
    if (path === '/jwks') return { body: { keys: idp.keys } }
    if (path === '/token') {
      const nonce =
        form['grant_type'] === 'refresh_token' ? undefined : (idp.codes.get(form['code'] ?? '') ?? idp.nonce)
      const id_token = await idp.idToken({ nonce, ...idp.claims })
      const members = {
        access_token: ACCESS,
        token_type: 'Bearer',
        expires_in: 3600,
        refresh_token: REFRESH,
        id_token,
        ...idp.tokens,
      }
      return { body: members }
    }
    if (path === '/introspect') return { body: { active: false } }
    if (path === '/userinfo') return { body: idp.user }
    return { status: 404 }
  }

  const replaced = (entry: Asked): Answer | undefined => {
    switch (entry.path) {
      case '/.well-known/openid-configuration':
        return idp.discovery
      case '/jwks':
        return idp.jwks
      case '/authorize':
        return undefined
      case '/revoke':
        return answerOf(idp.revocation, entry)
      case '/token':
        return answerOf(idp.token, entry)
      case '/introspect':
        return answerOf(idp.introspection, entry)
      default:
        return idp.userInfo
    }
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
      const { method = '', url = '', headers } = request
      const [path = '', query] = url.split('?')
      const shown = (request.socket as TLSSocket).getPeerCertificate().subject?.CN?.toString()
      const entry = { method, path, query: new URLSearchParams(query), headers, form, shown }
      asked.push(entry)
      void (async () => {
        const { status = 200, headers: more = {}, body, cut = false, after } = replaced(entry) ?? (await right(entry))
        await after
        if (cut) request.socket.destroy()
        response.writeHead(status, { 'content-type': 'application/json', ...more })
        response.end(typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body))
      })()
    })
  }
  idp.url = await sockets.https({ ...TLS.server, ...tls }, listener)
  return idp
}

export type Idp = Awaited<ReturnType<typeof startIdp>>
