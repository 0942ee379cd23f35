import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { createServer } from 'node:tls'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { LAB_AUDIENCE, type LabClient, type LabIdentityProvider, type Requirement } from '../../../lab/index.ts'
import { type Clock, Secret } from '../../../src/core/index.ts'
import { createSockets } from '../sockets.ts'
import { TLS } from '../tls.ts'
import { authConfig } from './run.ts'

/** Configs, and the routes and mounts of the same names, whose types are clients of a token endpoint with other grants than exchange. */
export const OTHER_GRANTS = ['own', 'obo', 'xaa'] as const
/** Client of the identity provider that users log in to. */
const LOGIN = 'login'
const SECRET = 'a-secret-of-another-grant'

/** Required properties of a caller's token for the type of this route. */
export const tokenFor = (route: string): { readonly aud?: string[]; readonly idToken?: boolean } =>
  route === 'xaa' ? { aud: [LAB_AUDIENCE, LOGIN], idToken: true } : {}

/** The mock services that these types need beside the lab's identity provider, and their configuration. */
export interface OtherGrants {
  /** To be made known to the identity provider. */
  readonly clients: readonly LabClient[]
  /** Mounts of the backend, and files of a proxy, once the identity provider is there. */
  for(identity: LabIdentityProvider): Promise<{
    readonly mounts: Readonly<Record<string, Requirement>>
    readonly files: Readonly<Record<string, string>>
  }>
  /** Tokens that were given for identity assertions. */
  readonly given: () => number
  close(): Promise<void>
}

/** A backend's own authorization server, which accepts only assertions of the identity provider. */
async function startTarget(sockets: ReturnType<typeof createSockets>, clock: Clock) {
  const given = new Map<string, Readonly<Record<string, unknown>>>()
  let identity: LabIdentityProvider | undefined
  const issue = async (form: URLSearchParams): Promise<object | undefined> => {
    if (identity === undefined || form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return undefined
    const { payload } = await jwtVerify(form.get('assertion') ?? '', createLocalJWKSet(identity.jwks()), {
      issuer: identity.url,
      audience: url,
      typ: 'oauth-id-jag+jwt',
      currentDate: new Date(clock.now()),
    })
    if (payload['client_id'] !== 'us-there') return undefined
    const token = randomUUID()
    given.set(token, { claims: { sub: payload.sub } })
    return { access_token: token, token_type: 'Bearer', expires_in: 300 }
  }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const answer = await issue(new URLSearchParams(await text(request))).catch(() => undefined)
    response.writeHead(answer === undefined ? 400 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer ?? { error: 'invalid_grant' }))
  }
  const url = await sockets.http((request, response) => void handle(request, response))
  return { url, given, trust: (one: LabIdentityProvider) => void (identity = one) }
}

/** TLS before a mock service without TLS, as these types require. */
async function startFront(target: URL) {
  const open = new Set<Socket>()
  const keep = <T extends Socket>(socket: T): T => {
    open.add(socket)
    socket.once('close', () => open.delete(socket)).once('error', () => socket.destroy())
    return socket
  }
  const server = createServer({ cert: TLS.server.cert, key: TLS.server.key }, (socket) => {
    const behind = keep(connect(Number(target.port), target.hostname))
    keep(socket).pipe(behind).pipe(socket)
    socket.once('close', () => behind.destroy())
    behind.once('close', () => socket.destroy())
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('no port')
  return {
    url: `https://127.0.0.1:${address.port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
  }
}

/** Starts them on free ports. */
export async function openOtherGrants(clock: Clock): Promise<OtherGrants> {
  const sockets = createSockets()
  const target = await startTarget(sockets, clock)
  const secret = new Secret(SECRET)
  const clientSecretRef = { name: 'others', key: 'secret' }
  const caCertPath = './secrets/others/ca'
  const fronts: Awaited<ReturnType<typeof startFront>>[] = []
  return {
    clients: [
      { id: 'own', secret, may: ['client_credentials'], audiences: ['own'] },
      { id: LAB_AUDIENCE, secret, may: ['on_behalf_of'], audiences: ['api://obo'] },
      { id: LOGIN, secret, may: [], assertsTo: [{ audience: target.url, clientId: 'us-there' }] },
    ],
    given: () => target.given.size,
    async for(identity) {
      target.trust(identity)
      const front = await startFront(new URL(identity.url))
      fronts.push(front)
      const { url: issuer, jwks: keys, isRevoked } = identity
      return {
        mounts: {
          '/own': { kind: 'jwt', issuer, audience: 'own', subject: 'own', keys, isRevoked },
          '/obo': { kind: 'jwt', issuer, audience: 'api://obo', keys, isRevoked },
          '/xaa': { kind: 'known', verify: (token) => target.given.get(token) },
        },
        files: {
          'own.json': authConfig('own', {
            type: 'clientCredentials',
            clientCredentials: { tokenUrl: `${issuer}/token`, audience: 'own', clientId: 'own', clientSecretRef },
          }),
          'obo.json': authConfig('obo', {
            type: 'obo',
            obo: {
              authority: front.url,
              caCertPath,
              tenantId: 'lab.example',
              clientId: LAB_AUDIENCE,
              clientSecretRef,
              audience: 'api://obo',
            },
          }),
          'xaa.json': authConfig('xaa', {
            type: 'xaa',
            xaa: {
              idpTokenUrl: `${front.url}/token`,
              idpCaCertPath: caCertPath,
              idpClientId: LOGIN,
              idpClientSecretRef: clientSecretRef,
              targetTokenUrl: `${target.url}/token`,
              targetAudience: target.url,
              targetClientId: 'us-there',
              targetClientSecretRef: clientSecretRef,
            },
          }),
          'secrets/others/secret': SECRET,
          'secrets/others/ca': TLS.ca.toString(),
        },
      }
    },
    async close() {
      await Promise.all([sockets.closeAll(), ...fronts.map((front) => front.close())])
    },
  }
}
