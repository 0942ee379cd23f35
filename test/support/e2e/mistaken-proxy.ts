import { createServer } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { vi } from 'vitest'
import { jwks, rsaKey, signed, type TestKey } from '../authenticate/keys.ts'
import type { Sockets } from '../sockets.ts'
import { TLS } from '../tls.ts'
import { authConfig, freePort, proxyConfig, run } from './run.ts'

const CA = new URL('../../fixtures/tls/ca.pem', import.meta.url).pathname
const AUDIENCE = 'mcp'
/** Part of the query of two URLs; must not be logged. */
const IN_A_QUERY = 'not-for-a-log'

/** The inspector's view of a failed request. */
export interface Why {
  readonly reason: string
  readonly who: string
  readonly cause: string
  readonly remedy: string
}

export interface LogLine {
  readonly reason?: string
  readonly why?: string
}

const TOKEN_ANSWERS: Readonly<Record<string, readonly [number, string]>> = {
  '/wrong-client': [401, '{"error":"invalid_client"}'],
  '/wrong-target': [400, '{"error":"invalid_target"}'],
  '/no-grant': [400, '{"error":"unsupported_grant_type"}'],
  '/denied': [403, '{"error":"access_denied"}'],
  '/page': [200, '<html>Log in</html>'],
}

/** An identity provider with one key; whatever is not listed is 404, as is every path of a realm that is not there. */
const identity = (sockets: Sockets, key: TestKey): Promise<string> =>
  sockets.http((request: IncomingMessage, response: ServerResponse) => {
    const keys = request.url === '/keys' ? ([200, JSON.stringify(jwks([key]))] as const) : undefined
    const [status, body] = keys ?? TOKEN_ANSWERS[request.url ?? ''] ?? [404, '{"error":"Realm does not exist"}']
    request.resume().once('end', () => {
      const type = body.startsWith('<') ? 'text/html' : 'application/json'
      response.writeHead(status, { 'content-type': type }).end(body)
    })
  })

/** A real proxy with a route for each thing that people configure wrongly, and an inspector. */
export async function startMistaken(sockets: Sockets) {
  const key = await rsaKey({ kid: 'one', alg: 'RS256', use: 'sig' })
  const idp = await identity(sockets, key)
  const closed = `127.0.0.1:${await freePort()}`
  const good = await sockets.http((_request, response) => response.end('{}'))
  const secure = await sockets.https(TLS.server, (_request, response) => response.end('{}'))
  const answering = (status: number, headers: Readonly<Record<string, string>> = {}) =>
    sockets.http((request, response) => {
      request.resume().once('end', () => response.writeHead(status, headers).end('{}'))
    })
  const cutting = await sockets.tcp((socket) => {
    socket.once('data', () => socket.destroy())
  })
  const silent = await sockets.http(() => undefined)
  const mutual = createServer({ ...TLS.server, ca: TLS.ca, requestCert: true })
  const wantsClient = `https://${await sockets.listen(mutual)}`

  const provider = (more: object = {}) => ({
    name: 'corporate',
    issuerUrl: idp,
    jwksUrl: `${idp}/keys`,
    audience: AUDIENCE,
    allowPrivateIP: true,
    ...more,
  })
  const callers = (more: object = {}) => ({
    mode: 'oauth',
    oauth: { resourceUrl: 'http://127.0.0.1/', providers: [provider(more)] },
  })
  const exchange = (name: string, tokenUrl: string) =>
    authConfig(name, { type: 'tokenExchange', tokenExchange: { tokenUrl, audience: 'crm', clientId: 'proxy' } })
  const routes = {
    good: { target: good },
    'no-backend': { target: `http://${closed}/mcp?key=${IN_A_QUERY}` },
    'no-such-host': { target: 'http://backend.invalid' },
    'no-tls': { target: good.replace('http:', 'https:') },
    'unknown-ca': { target: secure },
    'other-name': { target: secure, targetTls: { caCertPath: CA, serverName: 'other.example' } },
    'wants-certificate': { target: wantsClient, targetTls: { caCertPath: CA } },
    cutting: { target: cutting },
    silent: { target: silent, timeouts: { firstByte: '100ms' } },
    elsewhere: { target: await answering(302, { location: 'https://elsewhere.example/' }) },
    rejects: { target: await answering(401), externalAuthConfigRef: { name: 'static' } },
    'no-secret': { target: good, externalAuthConfigRef: { name: 'no-secret' } },
    scoped: { target: good, requiredScopes: ['write'] },
    'idp-gone': { target: good, auth: callers({ name: 'gone', jwksUrl: `http://${closed}/keys` }) },
    'idp-realm': { target: good, auth: callers({ name: 'realm', jwksUrl: `${idp}/realms/nope` }) },
    'idp-page': { target: good, auth: callers({ name: 'page', jwksUrl: `${idp}/page` }) },
    'idp-private': {
      target: good,
      auth: callers({ name: 'private', jwksUrl: 'https://10.0.0.1/keys', allowPrivateIP: false }),
    },
    'idp-nowhere': {
      target: good,
      auth: callers({ name: 'nowhere', issuerUrl: `${idp}/realms/nope`, jwksUrl: undefined }),
    },
    'idp-unknown-ca': { target: good, auth: callers({ name: 'unknown', jwksUrl: `${secure}/keys` }) },
    'token-404': { target: good, externalAuthConfigRef: { name: 'token-404' } },
    'token-client': { target: good, externalAuthConfigRef: { name: 'token-client' } },
    'token-target': { target: good, externalAuthConfigRef: { name: 'token-target' } },
    'token-grant': { target: good, externalAuthConfigRef: { name: 'token-grant' } },
    'token-denied': { target: good, externalAuthConfigRef: { name: 'token-denied' } },
    'token-page': { target: good, externalAuthConfigRef: { name: 'token-page' } },
    'token-gone': { target: good, externalAuthConfigRef: { name: 'token-gone' } },
    'no-role': { target: 'https://s3.eu-west-1.amazonaws.com', externalAuthConfigRef: { name: 'no-role' } },
  }
  const proxy = await run({
    'none.json': authConfig('none', { type: 'unauthenticated' }),
    'static.json': authConfig('static', {
      type: 'bearerToken',
      bearerToken: { tokenSecretRef: { name: 'static', key: 'token' } },
    }),
    'no-secret.json': authConfig('no-secret', {
      type: 'bearerToken',
      bearerToken: { tokenSecretRef: { name: 'nowhere', key: 'token' } },
    }),
    'token-404.json': exchange('token-404', `${idp}/realms/nope/token?key=${IN_A_QUERY}`),
    'token-client.json': exchange('token-client', `${idp}/wrong-client`),
    'token-target.json': exchange('token-target', `${idp}/wrong-target`),
    'token-grant.json': exchange('token-grant', `${idp}/no-grant`),
    'token-denied.json': exchange('token-denied', `${idp}/denied`),
    'token-page.json': exchange('token-page', `${idp}/page`),
    'token-gone.json': exchange('token-gone', `http://${closed}/token`),
    'no-role.json': authConfig('no-role', {
      type: 'cloudSts',
      cloudSts: {
        region: 'eu-west-1',
        service: 's3',
        roleMappings: [{ claim: 'admins', roleArn: 'arn:aws:iam::123456789012:role/admin' }],
      },
    }),
    'secrets/static/token': 'a-static-token',
    'proxy.json': proxyConfig({
      auth: callers(),
      admin: { inspector: 'heads' },
      routes: Object.entries(routes).map(([name, route]) =>
        Object.assign({ name, path: `/${name}`, externalAuthConfigRef: { name: 'none' } }, route),
      ),
    }),
  })
  sockets.closing(proxy)
  const nowSeconds = Math.floor(Date.now() / 1000)
  return {
    key,
    issuer: idp,
    closed,
    directory: proxy.directory,
    /** A token of the provider with these claims and members of its header besides the usual ones. */
    token: (claims: object = {}, header: object = {}, by: TestKey = key): Promise<string> => {
      const usual = { iss: idp, aud: AUDIENCE, sub: 'alice', exp: nowSeconds + 600 }
      return signed(by, { alg: 'RS256', kid: 'one', ...header }, { ...usual, ...claims })
    },
    /** Sends a request; returns its status, its explanation in the inspector, and its log line. */
    async ask(
      route: string,
      headers: readonly (readonly [string, string])[],
    ): Promise<{ status: number; why: Why; line: LogLine }> {
      const answer = await fetch(`${proxy.url}/${route}`, {
        method: 'POST',
        headers: [
          ['content-type', 'application/json'],
          ...headers.map(([name, value]): [string, string] => [name, value]),
        ],
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      })
      await answer.arrayBuffer()
      const id = answer.headers.get('x-request-id')
      // A request is kept when it is over, which may be after its client has the answer.
      const why = await vi.waitFor(
        async () => {
          const record = await fetch(`${proxy.adminUrl}/inspect/api/requests/${id}`)
          const found = ((await record.json()) as { why?: Why }).why
          if (found === undefined) throw new Error(`nothing is said of ${route} yet`)
          return found
        },
        { timeout: 30_000 },
      )
      const line = proxy.log.lines.find((text) => text.endsWith(' request') && text.includes(`"${id}"`)) ?? ''
      if (line === '' || line.includes(IN_A_QUERY))
        throw new Error(`the log line of ${route} is missing or has a query`)
      return { status: answer.status, why, line: JSON.parse(line.slice(0, -' request'.length)) as LogLine }
    },
  }
}
