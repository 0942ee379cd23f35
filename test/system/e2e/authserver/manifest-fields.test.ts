import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import { startIdp } from '../../../support/upstreams/idp.ts'
import { upstreamOf } from '../../../support/authserver/rig.ts'
import { INITIALIZE, post } from '../../../support/e2e/lab.ts'
import { authConfig, freePort, run } from '../../../support/e2e/run.ts'
import { Application, call, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it('with disableUpstreamTokenInjection callers log in, and the backend gets nothing that stands for them', async () => {
  const world = await openWorld(sockets, {
    spec: { disableUpstreamTokenInjection: true },
    files: () => ({ 'inject.json': authConfig('inject', { type: 'unauthenticated' }) }),
    routes: ({ proxy, backend }) => [
      {
        name: 'mcp',
        path: '/mcp',
        target: `${backend}/open`,
        externalAuthConfigRef: { name: 'as' },
        resourceUrl: `${proxy}/mcp`,
      },
    ],
  })
  expect((await post(`${world.url}/mcp`, INITIALIZE)).status).toBe(401)
  const client = await logIn(world, `${world.url}/mcp`, new Application(), LEGACY)
  expect(await call(client)).toContain('tools/call')
  await client.close()
  const names = new Set(world.backend.requests('/open').flatMap(({ headers }) => headers))
  expect(names.has('mcp-protocol-version')).toBe(true)
  expect([...names].filter((name) => /^(authorization|cookie|proxy-authorization)$/i.test(name))).toEqual([])
})

it('with insecureAllowHTTP a manifest of the other group runs with its http issuer, and each start warns of it', async () => {
  const idp = await startIdp(sockets)
  const address = `127.0.0.1:${await freePort()}`
  const issuer = 'http://auth.tools.svc:8080'
  const document = (kind: string, name: string, spec: object): string =>
    JSON.stringify({ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, metadata: { name }, spec })
  const files = {
    'secrets/idp/secret': 'of us',
    'secrets/idp/ca': TLS.ca.toString(),
    'login.json': document('MCPExternalAuthConfig', 'login', {
      type: 'embeddedAuthServer',
      embeddedAuthServer: { issuer, insecureAllowHTTP: true, upstreamProviders: [upstreamOf(idp)] },
    }),
    'notes.json': document('MCPRemoteProxy', 'notes', {
      remoteUrl: 'https://notes.example.com/mcp',
      resourceUrl: 'http://auth.tools.svc:8080/mcp',
      authServerRef: { kind: 'MCPExternalAuthConfig', name: 'login' },
    }),
  }
  for (const _start of ['first', 'second']) {
    const proxy = await run(files, { listen: address })
    const metadata = (await (await fetch(`http://${address}/.well-known/oauth-authorization-server`)).json()) as object
    expect(metadata).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/oauth/token`,
      // Its default there.
      token_endpoint_auth_methods_supported: ['none'],
      client_id_metadata_document_supported: false,
    })
    expect(proxy.log.lines.filter((line) => line.includes('plain http beyond this machine'))).toHaveLength(1)
    await proxy.close()
  }
})
