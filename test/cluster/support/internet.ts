import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fetch, ProxyAgent } from 'undici'
import { exportJWK, generateKeyPair, type JSONWebKeySet, SignJWT } from 'jose'
import { type IssuedCredentials, startLabBackend, startLabSts, verifySigv4 } from '../../../lab/index.ts'
import type { Send } from '../../support/authserver/browser.ts'
import { issueCertificates } from '../../../src/operator/webhook/certificates.ts'

const LOGIN = 'login.example.com'
const NOTES = 'notes.example.com'
const GATEWAY = 'tools.example.com'
const STS = 'sts.us-east-1.amazonaws.com'
export const ROLE = 'arn:aws:iam::123456789012:role/tools'

/** A request that reached an MCP server. */
export interface Arrived {
  readonly host: string
  readonly path: string
  readonly authorization: string | undefined
  /** The role whose credentials signed it; absent: not signed, or not validly. */
  readonly signedAs: string | undefined
}

/** Hosts under `example.com`, an STS and the API server, as pods reach them through an egress proxy. */
export interface Internet {
  /** Environment of the pods: the egress proxy, and the CA of the hosts. */
  readonly env: Readonly<Record<string, string>>
  readonly arrived: Arrived[]
  /** A token of the identity provider; `realm` is the path of its issuer. */
  tokenFor(audience: string, realm?: string): Promise<string>
  /** Leads `tools.example.com` to a pod, as a gateway that ends TLS. */
  expose(port: number): void
  /** `fetch` of clients outside of the cluster, which follows no redirect. */
  readonly fetch: Send
  close(): Promise<void>
}

/**
 * An identity provider at `login.example.com`, which logs all users in as alice, another one at `notes.example.com`, MCP servers at the other names, the STS of
 * a region that trusts the provider's tokens, and `kubernetes.default.svc`, which is the API server at `apiServerPort`.
 */
export async function startInternet(apiServerPort: number): Promise<Internet> {
  const clock = { now: () => Date.now() }
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwks: JSONWebKeySet = { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }] }
  const tokenOf = (realm: string, audience: string, claims: Record<string, unknown> = {}): Promise<string> =>
    new SignJWT({ email: 'alice@example.com', jti: randomUUID(), ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer(`https://${LOGIN}${realm}`)
      .setAudience(audience)
      .setSubject('alice')
      .setIssuedAt()
      .setExpirationTime('10m')
      .sign(privateKey)

  const backend = await startLabBackend({ port: 0, mounts: { '/mcp': { kind: 'none' } }, clock })
  const sts = await startLabSts({
    port: 0,
    clock,
    trust: {
      issuer: `https://${LOGIN}`,
      keys: () => jwks,
      roles: [{ arn: ROLE, audiences: ['cloud', 'a'] }],
    },
  })
  const arrived: Arrived[] = []
  let exposed = 0
  const nonces = new Map<string, string>()

  const logIn = async (url: URL, body: Buffer, response: ServerResponse): Promise<void> => {
    const [, realm = '', rest = ''] = /^((?:\/realms\/\w+)?)(\/.*)$/.exec(url.pathname) ?? []
    const issuer = `https://${LOGIN}${realm}`
    if (rest === '/.well-known/openid-configuration')
      return json(response, {
        issuer,
        jwks_uri: `${issuer}/keys`,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['ES256'],
        code_challenge_methods_supported: ['S256'],
      })
    if (rest === '/keys') return json(response, jwks)
    if (rest === '/authorize') {
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      const code = randomUUID()
      nonces.set(code, url.searchParams.get('nonce') ?? '')
      back.searchParams.set('code', code)
      back.searchParams.set('state', url.searchParams.get('state') ?? '')
      return void response.writeHead(302, { location: back.href }).end()
    }
    if (rest === '/token') {
      const nonce = nonces.get(new URLSearchParams(body.toString()).get('code') ?? '')
      const idToken = await tokenOf(realm, 'a', nonce === undefined ? {} : { nonce })
      return json(response, { access_token: randomUUID(), token_type: 'Bearer', expires_in: 600, id_token: idToken })
    }
    response.writeHead(404).end()
  }

  /** An authorization server that registers clients, and says nothing about its users. */
  const notes = (url: URL, response: ServerResponse): boolean => {
    const issuer = `https://${NOTES}`
    const endpoints: Readonly<Record<string, object>> = {
      '/.well-known/oauth-authorization-server': {
        issuer,
        registration_endpoint: `${issuer}/register`,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      },
      '/register': { client_id: 'registered', token_endpoint_auth_method: 'none' },
      '/token': { access_token: randomUUID(), token_type: 'Bearer', expires_in: 600 },
    }
    if (url.pathname === '/authorize') {
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      back.searchParams.set('code', randomUUID())
      back.searchParams.set('state', url.searchParams.get('state') ?? '')
      response.writeHead(302, { location: back.href }).end()
      return true
    }
    const found = endpoints[url.pathname]
    if (found !== undefined) json(response, found, url.pathname === '/register' ? 201 : 200)
    return found !== undefined
  }

  const pass = (request: IncomingMessage, body: Buffer, to: string, response: ServerResponse, as?: string): void => {
    const { host: _host, 'transfer-encoding': _coding, ...kept } = request.headers
    const length = body.length === 0 ? {} : { 'content-length': body.length }
    const headers = { ...kept, ...length, ...(as === undefined ? {} : { host: as }) }
    const onward = httpRequest(to, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.once('error', () => response.destroy())
    response.once('close', () => onward.destroy())
    onward.end(body)
  }

  const signerOf = (request: IncomingMessage, body: Buffer): IssuedCredentials | undefined => {
    const { method = '', url: target = '/', rawHeaders: headers } = request
    for (const service of ['aws-mcp', 'execute-api']) {
      const expected = { region: 'us-east-1', service, nowMs: clock.now(), lookup: sts.lookup }
      const verdict = verifySigv4({ method, target, headers, body }, expected)
      if (verdict.ok) return verdict.credentials
    }
    return undefined
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const host = request.headers.host ?? ''
    const url = new URL(request.url ?? '/', `https://${host}`)
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    if (host === LOGIN) return logIn(url, body, response)
    if (host === GATEWAY) return pass(request, body, `http://127.0.0.1:${exposed}${request.url ?? '/'}`, response, host)
    if (host === STS) return pass(request, body, `${sts.url}/`, response)
    if (host === NOTES && notes(url, response)) return
    const { authorization } = request.headers
    arrived.push({ host, path: url.pathname, authorization, signedAs: signerOf(request, body)?.roleArn })
    pass(request, body, `${backend.url}/mcp`, response)
  }

  const certificates = await issueCertificates({ names: [LOGIN, '*.example.com', STS], nowMs: clock.now() })
  const { cert, key } = certificates.serving
  const secure = createTlsServer({ cert, key: key.reveal() }, (request, response) => {
    serve(request, response).catch(() => response.destroy())
  })
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    return socket.on('error', () => socket.destroy())
  }
  const egress = createServer().on('connect', (request, client: Socket, head: Buffer) => {
    keep(client)
    const port = request.url === 'kubernetes.default.svc:443' ? apiServerPort : portOf(secure)
    const onward = keep(connect(port, '127.0.0.1'))
    onward.once('connect', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      onward.write(head)
      client.pipe(onward).pipe(client)
    })
    onward.once('close', () => client.destroy())
    client.once('close', () => onward.destroy())
  })
  await Promise.all([listen(secure), listen(egress)])
  // Pods run as a user of their own, and read it.
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-internet-'))
  chmodSync(directory, 0o755)
  const caFile = path.join(directory, 'ca.pem')
  writeFileSync(caFile, certificates.caBundle)
  const dispatcher = new ProxyAgent({
    uri: `http://127.0.0.1:${portOf(egress)}`,
    requestTls: { ca: certificates.caBundle },
  })
  return {
    async fetch(url, { method, headers, body }) {
      const sent = body instanceof URLSearchParams ? body.toString() : typeof body === 'string' ? body : undefined
      const type = body instanceof URLSearchParams ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
      const answer = await fetch(url, {
        dispatcher,
        redirect: 'manual',
        headers: { ...type, ...(headers as Readonly<Record<string, string>>) },
        ...(method === undefined ? {} : { method }),
        ...(sent === undefined ? {} : { body: sent }),
      })
      return new Response(await answer.text(), { status: answer.status, headers: [...answer.headers] })
    },
    expose(port) {
      exposed = port
    },
    env: { HTTPS_PROXY: `http://127.0.0.1:${portOf(egress)}`, NODE_EXTRA_CA_CERTS: caFile },
    arrived,
    tokenFor: (audience, realm = '') => tokenOf(realm, audience),
    async close() {
      await dispatcher.close()
      for (const socket of sockets) socket.destroy()
      secure.closeAllConnections()
      await Promise.all([secure, egress].map((server) => new Promise((resolve) => server.close(resolve))))
      await Promise.all([backend.close(), sts.close()])
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const json = (response: ServerResponse, body: object, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const listen = (server: Server): Promise<void> =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve()))

const portOf = (server: Server): number => (server.address() as AddressInfo).port
