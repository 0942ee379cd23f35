import { createServer as createHttp, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { main } from '../../../../src/cli/commands/index.ts'
import type { CheckResult } from '../../../../src/examine/check/result.ts'
import type { Pair } from './certificates.ts'

export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: object | string
  /** The connection is cut instead. */
  readonly cut?: boolean
}
export type Answering = (request: IncomingMessage, body: string) => Answer

/** A server whose answers are chosen by path, with the query where that is listed; what is not listed is 404. */
export interface Site {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

const SECURE = { minVersion: 'TLSv1.2' } as const

export async function site(
  answers: Readonly<Record<string, Answering>>,
  tls?: Pair & { readonly clientCa?: string },
): Promise<Site> {
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { url = '' } = request
      const answering = answers[url] ?? answers[url.replace(/\?.*/, '')]
      const answer = answering?.(request, Buffer.concat(chunks).toString('utf8')) ?? { status: 404 }
      if (answer.cut === true) return request.socket.destroy()
      const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {})
      const type = typeof answer.body === 'string' ? 'text/plain' : 'application/json'
      return response.writeHead(answer.status ?? 200, { 'content-type': type, ...answer.headers }).end(text)
    })
  }
  const mutual = tls?.clientCa === undefined ? {} : { ca: tls.clientCa, requestCert: true }
  const server: Server =
    tls === undefined
      ? createHttp(listener)
      : createHttps({ ...SECURE, cert: tls.cert, key: tls.key, ...mutual }, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

const MCP_RESULT = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'mock', version: '1' } }

/** A backend that answers `initialize` to who shows `authorization`, if one is wanted. */
export const mcp =
  (authorization?: string): Answering =>
  ({ headers }) =>
    authorization !== undefined && headers.authorization !== authorization
      ? { status: 401 }
      : { body: { jsonrpc: '2.0', id: 1, result: MCP_RESULT } }

/** An identity provider with every endpoint in order; `change` puts others in their place. */
export async function identityProvider(
  change: (url: () => string) => Readonly<Record<string, Answering>> = () => ({}),
) {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }
  let url = ''
  const issued = {
    access_token: 'made',
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
  }
  const isOurs = (body: string) => new URLSearchParams(body).get('subject_token')?.startsWith('ey') === true
  const server = await site({
    '/.well-known/openid-configuration': () => ({ body: { issuer: url, jwks_uri: `${url}/jwks` } }),
    '/jwks': () => ({ body: { keys: [jwk] } }),
    '/introspect': ({ headers }) =>
      headers.authorization === undefined ? { status: 401 } : { body: { active: false } },
    '/token': (_request, body) =>
      isOurs(body) ? { body: issued } : { status: 400, body: { error: 'invalid_request' } },
    ...change(() => url),
  })
  url = server.url
  const token = (claims: object = {}, lifetimeSeconds = 300) =>
    new SignJWT({ sub: 'ada', aud: 'mcp', groups: ['readers'], ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'k' })
      .setIssuer(url)
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1000) + lifetimeSeconds)
      .sign(privateKey)
  return { ...server, token }
}

/** An answer of STS. */
export const stsCredentials = (): Answer => ({
  headers: { 'content-type': 'text/xml' },
  body: `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAIOSFODNN7EXAMPLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>${new Date(Date.now() + 900_000).toISOString()}</Expiration></Credentials></AssumeRoleWithWebIdentityResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></AssumeRoleWithWebIdentityResponse>`,
})
export const stsError = (code: string): Answer => ({
  status: 403,
  headers: { 'content-type': 'text/xml' },
  body: `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>no</Message></Error></ErrorResponse>`,
})

export interface Checked {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly checks: readonly CheckResult[]
}

/** A folder for one run; `check` runs the command in it. */
export async function openFolder() {
  const directory = await mkdtemp(path.join(tmpdir(), 'check-'))
  const at = (name: string): string => path.join(directory, name)
  const write = async (name: string, text: string): Promise<string> => {
    await mkdir(path.dirname(at(name)), { recursive: true })
    await writeFile(at(name), text)
    return at(name)
  }
  const check = (token?: string, ...more: readonly string[]): Promise<Checked> => checkIn({}, token, ...more)
  const checkIn = async (
    env: Readonly<Record<string, string>>,
    token?: string,
    ...more: readonly string[]
  ): Promise<Checked> => {
    let [out, err] = ['', '']
    const argv = ['check', '--config', at('proxy.yaml'), '--output', 'json', ...more]
    if (token !== undefined) argv.push('--token-file', '-')
    const code = await main(argv, {
      stdout: (text) => void (out += text),
      stderr: (text) => void (err += text),
      env,
      stdin: () => Promise.resolve(token ?? ''),
      stop: new Promise(() => {}),
      onReload: () => undefined,
    })
    const { sections = [] } = (out.startsWith('{') ? JSON.parse(out) : {}) as {
      sections?: { checks: CheckResult[] }[]
    }
    return { code, out, err, checks: sections.flatMap(({ checks }) => checks) }
  }
  return { at, write, check, checkIn, remove: () => rm(directory, { recursive: true, force: true }) }
}
export type Folder = Awaited<ReturnType<typeof openFolder>>

/** A ProxyConfig with one route, and its MCPExternalAuthConfig. */
export const documents = (route: object, auth: object, spec: object = {}): string =>
  [
    {
      kind: 'ProxyConfig',
      metadata: { name: 'p' },
      spec: {
        listen: { address: '127.0.0.1:0' },
        ...spec,
        routes: [{ name: 'r', path: '/', externalAuthConfigRef: { name: 'a' }, ...route }],
      },
    },
    { kind: 'MCPExternalAuthConfig', metadata: { name: 'a' }, spec: auth },
  ]
    .map((document) => JSON.stringify({ apiVersion: 'extauth.dev/v1alpha1', ...document }))
    .join('\n---\n')

export const ANONYMOUS = { mode: 'anonymous' }
export const oauth = (issuerUrl: string, more: object = {}): object => ({
  mode: 'oauth',
  oauth: { resourceUrl: 'http://127.0.0.1/', providers: [{ name: 'idp', issuerUrl, audience: 'mcp', ...more }] },
})
