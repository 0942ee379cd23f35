import { authConfig, configFolder, freePort, proxyConfig } from '../test/support/e2e/run.ts'
import { extauth } from '../test/support/e2e/process.ts'
import { claimsOfNow, newSigningKey } from '../test/support/e2e/authserver/fleet.ts'
import {
  LIMITS,
  logIn,
  type LoginRig,
  redeem,
  register,
  type Tokens,
  upstreamOf,
} from '../test/support/authserver/rig.ts'
import { type Idp, startIdp } from '../test/support/upstreams/idp.ts'
import type { Sockets } from '../test/support/sockets.ts'
import { TLS } from '../test/support/tls.ts'

/** A proxy with an embedded authorization server. */
export interface LoginProxy {
  readonly url: string
  readonly pid: number
  readonly idp: Idp
  /** Returns a function that performs a complete login of a client for the route at `path`; it rejects when a step fails. */
  client(path: string): Promise<() => Promise<Tokens>>
}

/** A route of such a proxy at `/<name>` with the credentials of `config` (`bearer` or `inject`). */
export const loginRoute = (name: string, config: string, more: object): object => ({
  name,
  path: `/${name}`,
  externalAuthConfigRef: { name: config },
  ...more,
})

/** Settings of a route of the proxy at `url` for users of its own authorization server. */
export const loginAt = (url: string, name: string): object => ({
  resourceUrl: `${url}/${name}`,
  authServerRef: { kind: 'MCPExternalAuthConfig', name: 'as' },
})

/** Starts one with an identity provider behind it; both end with `sockets`. */
export async function startLoginProxy(
  sockets: Sockets,
  routes: (url: string, idp: Idp) => readonly object[],
  more: { readonly spec: (idp: Idp) => object; readonly files: Readonly<Record<string, string>> } = {
    spec: () => ({}),
    files: {},
  },
): Promise<LoginProxy> {
  const idp = await startIdp(sockets)
  idp.claims = claimsOfNow()
  const url = `http://127.0.0.1:${await freePort()}`
  const folder = await configFolder({
    'secrets/idp/secret': 'of us',
    'secrets/idp/ca': TLS.ca.toString(),
    'secrets/as/hmac': Buffer.alloc(32, 0xa5),
    'secrets/as/signing': newSigningKey(),
    'secrets/bench/token': 'a-token',
    'as.json': authConfig('as', {
      type: 'embeddedAuthServer',
      embeddedAuthServer: {
        issuer: url,
        upstreamProviders: [upstreamOf(idp)],
        hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
        signingKeySecretRefs: [{ name: 'as', key: 'signing' }],
        limits: LIMITS,
      },
    }),
    'bearer.json': authConfig('bearer', {
      type: 'bearerToken',
      bearerToken: { tokenSecretRef: { name: 'bench', key: 'token' } },
    }),
    'inject.json': authConfig('inject', { type: 'upstreamInject', upstreamInject: { providerName: 'corp' } }),
    'proxy.json': proxyConfig({ secretsDirectory: './secrets', routes: routes(url, idp), ...more.spec(idp) }),
    ...more.files,
  })
  sockets.closing({ close: folder.remove })
  const args = ['--config', folder.directory, '--listen', url.replace('http://', ''), '--admin', '127.0.0.1:0']
  const proxy = extauth(['proxy', ...args])
  sockets.closing({ close: () => (proxy.process.kill('SIGKILL'), proxy.ended) })
  await proxy.line('listening')
  return {
    url,
    pid: proxy.process.pid ?? 0,
    idp,
    async client(path) {
      const rig = rigOf(idp, url, `${url}${path}`)
      const client = await register(rig)
      return async () => {
        const { answer, pkce } = await logIn(rig, client)
        const response = await redeem(rig, client, answer.get('code') ?? '', pkce)
        if (response.status !== 200) throw new Error(`a login failed: ${await response.text()}`)
        return (await response.json()) as Tokens
      }
    },
  }
}

const rigOf = (idp: LoginRig['idp'], issuer: string, resource: string): LoginRig => ({
  issuer,
  idp,
  clock: Date,
  resources: [{ url: resource }],
  server: { addresses: { authorizeUrl: `${issuer}/oauth/authorize` } },
})
