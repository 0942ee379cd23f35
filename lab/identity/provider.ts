import Fastify, { type FastifyInstance } from 'fastify'
import type { JSONWebKeySet } from 'jose'
import { z } from 'zod'
import type { Clock, Secret } from '../../src/core/index.ts'
import { createLabFaults, FAULT_MODES, type LabFaults } from '../faults.ts'
import { isFromThisMachine } from '../guard.ts'
import { listenOnLoopback, type Listening } from '../listen.ts'
import { createLogins, type LabUser } from './authorize.ts'
import { createClients, type LabClient } from './clients.ts'
import { type Endpoint, type EndpointDeps, registerEndpoints } from './endpoints.ts'
import { createSigningKeys, type SigningKeys } from './keys.ts'
import { MINT, mint } from './mint.ts'
import { OAuthRefusal } from './oauth-error.ts'
import { createTokens, type Tokens } from './tokens.ts'

/** Default users of the login page. Nothing is ever exchanged for mallory. */
export const LAB_USERS: readonly LabUser[] = [
  { subject: 'alice', claims: { groups: ['admins', 'dev'], email: 'alice@example.com' } },
  { subject: 'bob', claims: { groups: ['dev'], email: 'bob@example.com' } },
  { subject: 'carol', claims: { groups: [], email: 'carol@example.com' } },
  { subject: 'mallory', claims: { groups: ['dev'], email: 'mallory@example.com' } },
]

/** TLS listener of a demo service, and its certificate. */
export interface LabTls {
  /** Port on loopback; 0 takes a free one. */
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly key: Secret
  /** The second issuer, where something stands before it. Default: where it listens. */
  readonly publicUrl?: string
}

export interface LabIdentityProviderOptions {
  /** Port on loopback; 0 takes a free one. The issuer is `http://127.0.0.1:PORT`. */
  readonly port: number
  /** The issuer, where something stands before it: `http://127.0.0.1:PORT`. Default: where it listens. */
  readonly publicUrl?: string
  /** Absent: plain http only. The second issuer is `https://127.0.0.1:PORT`. */
  readonly tls?: LabTls
  readonly clients: readonly LabClient[]
  readonly clock: Clock
  readonly users?: readonly LabUser[]
  /** Default: mallory. */
  readonly deniedSubjects?: readonly string[]
  /** Default: a switchboard of its own. */
  readonly faults?: LabFaults
}

export interface LabIdentityProvider {
  /** Also the issuer: where clients find it. */
  readonly url: string
  /** The issuer on TLS; its tokens are its own. */
  readonly tlsUrl?: string
  /** Where it listens, in this order: plain, on TLS. */
  readonly addresses: readonly string[]
  readonly faults: LabFaults
  readonly jwks: () => JSONWebKeySet
  readonly isRevoked: (jti: string) => boolean
  rotate(options?: { readonly forget?: boolean }): Promise<void>
  /** Mints a token, as `POST /lab/token` does. */
  mint(input: z.input<typeof MINT>): Promise<string>
  /** How often an endpoint was asked since the start. */
  calls(endpoint: Endpoint): number
  close(): Promise<void>
}

const MODE = z.enum(FAULT_MODES)
const FAULTS = z.strictObject({
  exchange: MODE.optional(),
  clientCredentials: MODE.exclude(['revoking']).optional(),
  introspection: MODE.optional(),
  sts: MODE.optional(),
  slowMs: z.number().int().min(0).max(600_000).optional(),
  retryAfterSeconds: z.number().int().min(0).max(3600).optional(),
})

/**
 * Starts the lab's identity provider on loopback: OpenID Connect discovery and RFC 8414, two keys that rotate on demand,
 * a login without password, dynamic registration, client credentials, token exchange (RFC 8693), the on-behalf-of flow of Entra
 * ID, introspection
 * (RFC 7662), and `/lab/token`, which mints whatever token is asked for. With `tls` it is a second issuer as well, with
 * the same users, clients and keys. A demo for trying things out. Throws `PortInUse`.
 */
export async function startLabIdentityProvider(options: LabIdentityProviderOptions): Promise<LabIdentityProvider> {
  const { clock, users = LAB_USERS, faults = createLabFaults() } = options
  const keys = await createSigningKeys()
  const clients = createClients(options.clients)
  const policy = { deniedSubjects: options.deniedSubjects ?? ['mallory'] }
  const asked = new Map<Endpoint, number>()
  const count = (endpoint: Endpoint) => void asked.set(endpoint, (asked.get(endpoint) ?? 0) + 1)
  const issuers: Issuer[] = []
  faults.onRevoking('exchange', () => issuers.forEach(({ tokens }) => tokens.revokeExchanged()))
  const verify: EndpointDeps['verify'] = async (token) => {
    for (const { tokens } of issuers) {
      const claims = await tokens.verify(token)
      if (claims !== undefined) return claims
    }
    return undefined
  }
  const close = async () => {
    await Promise.all(issuers.map(async ({ app, listening }) => (await listening?.close(), app.close())))
  }

  async function openIssuer(port: number, publicUrl?: string, tls?: LabTls): Promise<Issuer> {
    const app = createApp()
    let url = ''
    const issuer = () => url
    const tokens = createTokens(issuer, keys, clock)
    const logins = createLogins(issuer, clients, users, clock)
    const opened: Issuer = { app, tokens, url: issuer }
    issuers.push(opened)
    await app.register((scope) =>
      registerEndpoints(scope, { issuer, keys, tokens, clients, logins, users, faults, policy, verify, clock, count }),
    )
    await app.register((scope) => registerControls(scope, { keys, tokens, faults }))
    await app.ready()
    const pair = tls && { cert: Buffer.from(tls.certificate), key: Buffer.from(tls.key.reveal()) }
    opened.listening = await listenOnLoopback(port, (request, response) => app.routing(request, response), pair)
    url = publicUrl ?? opened.listening.url
    return opened
  }

  try {
    const plain = await openIssuer(options.port, options.publicUrl)
    const { tls } = options
    const secure = tls === undefined ? undefined : await openIssuer(tls.port, tls.publicUrl, tls)
    return {
      url: plain.url(),
      ...(secure === undefined ? {} : { tlsUrl: secure.url() }),
      addresses: issuers.flatMap(({ listening }) => (listening === undefined ? [] : [listening.url])),
      faults,
      jwks: keys.published,
      isRevoked: (jti) => issuers.some(({ tokens }) => tokens.isRevoked(jti)),
      rotate: (rotation) => keys.rotate(rotation),
      mint: async (input) => (await mint(MINT.parse(input), plain.tokens)).access_token,
      calls: (endpoint) => asked.get(endpoint) ?? 0,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

interface Issuer {
  readonly app: FastifyInstance
  readonly tokens: Tokens
  readonly url: () => string
  /** Undefined until it listens. */
  listening?: Listening
}

function createApp(): FastifyInstance {
  const app: FastifyInstance = Fastify({ logger: false, bodyLimit: 1024 * 1024 })
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, new URLSearchParams(String(body))),
  )
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof OAuthRefusal) {
      return reply
        .code(error.status)
        .headers(error.headers)
        .send({ error: error.error, error_description: error.description })
    }
    const { statusCode = 500 } = error as { statusCode?: number }
    const [status, code] = statusCode < 500 ? [statusCode, 'invalid_request'] : [500, 'server_error']
    return reply.code(status).send({ error: code, error_description: 'the request could not be answered' })
  })
  return app
}

/** Controls of the demo: they mint tokens for any user, so pages in the user's browser must not reach them. */
function registerControls(
  scope: FastifyInstance,
  { keys, tokens, faults }: { readonly keys: SigningKeys; readonly tokens: Tokens; readonly faults: LabFaults },
): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (isFromThisMachine(request.headers.host, request.headers.origin)) return
    await reply.code(403).send({ error: 'access_denied', error_description: 'only from this machine' })
  })
  scope.post('/lab/token', (request) => mint(parse(MINT, request.body), tokens))
  scope.post('/lab/rotate', (request) => {
    const rotation = parse(z.strictObject({ forget: z.boolean().default(false) }), request.body ?? {})
    return keys.rotate(rotation).then(() => keys.jwks())
  })
  scope.post('/lab/revoke', (request) => {
    const { token } = parse(z.strictObject({ token: z.string().max(16_384) }), request.body)
    return tokens.revoke(token).then((revoked) => ({ revoked }))
  })
  scope.get('/lab/faults', () => faults.settings)
  scope.post('/lab/faults', (request) => {
    const given = Object.entries(parse(FAULTS, request.body)).filter(([, value]) => value !== undefined)
    faults.set(Object.fromEntries(given))
    return faults.settings
  })
}

function parse<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body)
  if (!parsed.success) throw new OAuthRefusal('invalid_request', z.prettifyError(parsed.error))
  return parsed.data
}
