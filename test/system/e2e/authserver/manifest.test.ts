import { afterEach, expect, it } from 'vitest'
import { startLabBackend } from '../../../../lab/index.ts'
import { Secret } from '../../../../src/core/index.ts'
import { startStrictIdp } from '../../../support/authserver/strict-idp.ts'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import { authConfig, freePort, run } from '../../../support/e2e/run.ts'
import { Application, call, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'
import { userOf } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const BACKEND_TOKEN = 'token-of-the-backend'

/** A VirtualMCPServer with a login of its own at two providers, and three backends that are reached in different ways. */
async function openHub() {
  const url = `http://127.0.0.1:${await freePort()}`
  const callbacks = ['/notes', '/files', '/tools'].map((path) => `${url}${path}/oauth/callback`)
  const client = (name: string) => ({
    client_id: name,
    client_secret: `secret of ${name}`,
    redirect_uris: callbacks,
    grant_types: ['authorization_code', 'refresh_token'],
  })
  const idps = {
    corp: await startStrictIdp(sockets, [client('corp')]),
    hub: await startStrictIdp(sockets, [client('hub')]),
  }
  const backend = sockets.closing(
    await startLabBackend({
      port: 0,
      clock: Date,
      mounts: { '/open': { kind: 'none' }, '/fixed': { kind: 'bearer', token: new Secret(BACKEND_TOKEN) } },
    }),
  )
  const provider = (name: keyof typeof idps) => ({
    name,
    type: 'oidc',
    caBundleRef: { name: 'idp', key: 'ca' },
    oidcConfig: { issuerUrl: idps[name].issuer, clientId: name, clientSecretRef: { name: 'idp', key: name } },
  })
  const byRef = (name: string) => ({ type: 'externalAuthConfigRef', externalAuthConfigRef: { name } })
  const manifest = {
    apiVersion: 'extauth.dev/v1alpha1',
    kind: 'VirtualMCPServer',
    metadata: { name: 'hub' },
    spec: {
      authServerConfig: {
        issuer: url,
        upstreamProviders: [provider('corp'), provider('hub')],
        hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
      },
      resourceUrl: url,
      outgoingAuth: { default: byRef('fixed'), backends: { files: byRef('of-hub') } },
    },
    status: {
      discoveredBackends: [
        { name: 'notes', url: `${backend.url}/open`, authConfigRef: 'of-first' },
        { name: 'files', url: `${backend.url}/open`, authConfigRef: 'of-first' },
        { name: 'tools', url: `${backend.url}/fixed` },
        { name: 'gone' },
      ],
    },
  }
  const proxy = sockets.closing(
    await run(
      {
        'secrets/idp/ca': TLS.ca.toString(),
        'secrets/idp/corp': client('corp').client_secret,
        'secrets/idp/hub': client('hub').client_secret,
        'secrets/as/hmac': 'an HMAC secret of more than thirty-two bytes',
        'secrets/backend/token': BACKEND_TOKEN,
        'hub.json': JSON.stringify(manifest),
        'of-first.json': authConfig('of-first', { type: 'upstreamInject', upstreamInject: { providerName: 'corp' } }),
        'of-hub.json': authConfig('of-hub', { type: 'upstreamInject', upstreamInject: { providerName: 'hub' } }),
        'fixed.json': authConfig('fixed', {
          type: 'bearerToken',
          bearerToken: { tokenSecretRef: { name: 'backend', key: 'token' } },
        }),
      },
      { listen: url.replace('http://', '') },
    ),
  )
  return { url, proxy, backend, idps, userAt: (at: string) => userOf(Object.values(idps))(at) }
}

it('a VirtualMCPServer runs as it is written: login at its own server, a tool result of each backend', async () => {
  const hub = await openHub()
  const sent = () =>
    hub.backend.requests('/open').map(({ headers }) => headers[headers.indexOf('authorization') + 1] ?? '')
  for (const revision of [LEGACY, '2026-07-28']) {
    for (const [path, visits] of [
      ['/notes', 1],
      ['/files', 2],
      ['/tools', 1],
    ] as const) {
      const before = sent().length
      const application = new Application()
      let visited: readonly string[] = []
      const userAt = async (at: string): Promise<URL> => {
        const user = userOf(Object.values(hub.idps), (origins) => (visited = origins))
        return user(at)
      }
      const client = await logIn({ userAt }, hub.url + path, application, revision)
      expect(await call(client)).toContain('tools/call')
      // Only the upstreams that the backend's route needs.
      expect(visited).toHaveLength(visits)
      const tokens = new Set(sent().slice(before))
      expect(tokens.size).toBe(path === '/tools' ? 0 : 1)
      for (const token of tokens) expect(token).not.toContain(application.kept?.access_token)
      await client.close()
    }
  }
})
