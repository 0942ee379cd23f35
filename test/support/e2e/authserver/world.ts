import { startLabBackend, type LabBackend } from '../../../../lab/index.ts'
import { Secret } from '../../../../src/core/index.ts'
import { Browser } from '../../authserver/browser.ts'
import { startStrictIdp, type StrictIdp } from '../../authserver/strict-idp.ts'
import type { Sockets } from '../../sockets.ts'
import { TLS } from '../../tls.ts'
import { authConfig, freePort, proxyConfig, run, type RunningTestProxy } from '../run.ts'

const CLIENT_SECRET = 'secret: of/the+proxy'
export const BACKEND_TOKEN = 'token-of-the-backend'

/** The real proxy with an authorization server, an independent identity provider, and an MCP backend. */
export interface World {
  readonly url: string
  readonly proxy: StartedProxy
  readonly idp: StrictIdp
  readonly backend: LabBackend
  /** The text of its `ProxyConfig`. */
  readonly proxyConfig: string
  /** Of the server `as`. */
  readonly spec: Readonly<Record<string, unknown>>
  /** The user's part: agrees on our page, logs in at the identity provider; gives the address that the client gets. */
  userAt(authorizationUrl: string, options?: { readonly browser?: Browser; readonly subject?: string }): Promise<URL>
}

/** Interface of a proxy, in this process or another. */
export type StartedProxy = Pick<RunningTestProxy, 'url' | 'adminUrl' | 'write' | 'reload' | 'close'>

export interface WorldOptions {
  /** Starts the proxy otherwise than in this process. */
  readonly start?: (files: Readonly<Record<string, string | Buffer>>, listen: string) => Promise<StartedProxy>
  /** Put over the spec of the server. */
  readonly spec?: Readonly<Record<string, unknown>>
  /** More servers with the same upstream: name to the path of the issuer. */
  readonly servers?: Readonly<Record<string, string>>
  readonly accessSeconds?: number
  /** The proxy's; the identity provider has the real one. */
  readonly clock?: { now(): number }
  /** More files, given the proxy's and the backend's address. */
  readonly files?: (urls: {
    readonly proxy: string
    readonly backend: string
  }) => Readonly<Record<string, string | Buffer>>
  readonly routes?: (urls: { readonly proxy: string; readonly backend: string }) => readonly object[]
}

export async function openWorld(sockets: Sockets, options: WorldOptions = {}): Promise<World> {
  const url = `http://127.0.0.1:${await freePort()}`
  const callbacks = ['', '/mcp', '/inject', '/deep'].map((path) => `${path}/oauth/callback`)
  const client = {
    client_id: 'extauth',
    client_secret: CLIENT_SECRET,
    redirect_uris: callbacks.map((path) => url + path),
    grant_types: ['authorization_code', 'refresh_token'],
  }
  const ttl = options.accessSeconds === undefined ? {} : { accessSeconds: options.accessSeconds }
  const idp = await startStrictIdp(sockets, [client], ttl)
  const backend = sockets.closing(
    await startLabBackend({
      port: 0,
      clock: Date,
      mounts: { '/plain': { kind: 'bearer', token: new Secret(BACKEND_TOKEN) }, '/open': { kind: 'none' } },
    }),
  )
  const spec = {
    issuer: url,
    upstreamProviders: [
      {
        name: 'corp',
        type: 'oidc',
        caBundleRef: { name: 'idp', key: 'ca' },
        oidcConfig: {
          issuerUrl: idp.issuer,
          clientId: 'extauth',
          clientSecretRef: { name: 'idp', key: 'secret' },
          scopes: ['openid', 'offline_access', 'profile', 'email'],
          additionalAuthorizationParams: { prompt: 'consent' },
        },
      },
    ],
    hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
    ...options.spec,
  }
  const urls = { proxy: url, backend: backend.url }
  const routes = options.routes?.(urls) ?? [
    {
      name: 'mcp',
      path: '/mcp',
      target: `${backend.url}/plain`,
      externalAuthConfigRef: { name: 'static' },
      resourceUrl: `${url}/mcp`,
    },
    {
      name: 'inject',
      path: '/inject',
      target: `${backend.url}/open`,
      externalAuthConfigRef: { name: 'inject' },
      resourceUrl: `${url}/inject`,
    },
  ]
  const inThisProcess: WorldOptions['start'] = (files, listen) =>
    run(files, { listen, ...(options.clock === undefined ? {} : { clock: options.clock }) })
  const configured = proxyConfig({ authServerRef: { kind: 'MCPExternalAuthConfig', name: 'as' }, routes })
  const proxy = sockets.closing(
    await (options.start ?? inThisProcess)(
      {
        'secrets/idp/secret': CLIENT_SECRET,
        'secrets/idp/ca': TLS.ca.toString(),
        'secrets/as/hmac': 'an HMAC secret of more than thirty-two bytes',
        'secrets/backend/token': BACKEND_TOKEN,
        ...Object.fromEntries(
          Object.entries({ as: '', ...options.servers }).map(([name, path]) => {
            const embeddedAuthServer = { ...spec, issuer: `${url}${path}` }
            return [`${name}.json`, authConfig(name, { type: 'embeddedAuthServer', embeddedAuthServer })]
          }),
        ),
        'static.json': authConfig('static', {
          type: 'bearerToken',
          bearerToken: { tokenSecretRef: { name: 'backend', key: 'token' } },
        }),
        'inject.json': authConfig('inject', { type: 'upstreamInject', upstreamInject: { providerName: 'corp' } }),
        'proxy.json': configured,
        ...options.files?.(urls),
      },
      url.replace('http://', ''),
    ),
  )
  return {
    url,
    proxy,
    idp,
    backend,
    spec,
    proxyConfig: configured,
    userAt: userOf([idp]),
  }
}

/**
 * Acts as a user: consents on the proxy's page, and logs in at each of these identity providers. `onVisits` is notified
 * where they were sent.
 */
export const userOf =
  (idps: readonly StrictIdp[], onVisits: (origins: readonly string[]) => void = () => undefined): World['userAt'] =>
  async (authorizationUrl, { browser = new Browser(), subject = 'alice' } = {}) => {
    const asked = await browser.get(authorizationUrl)
    const sent = asked.status === 200 ? await browser.press(asked, 'continue') : asked
    const visits: string[] = []
    for (let location = sent.location ?? ''; ;) {
      const idp = idps.find(({ issuer }) => location.startsWith(issuer))
      if (idp === undefined) {
        onVisits(visits)
        return new URL(location)
      }
      visits.push(idp.issuer)
      const back = await idp.approve(location, subject)
      location = (await browser.get(back.href)).location ?? ''
    }
  }
