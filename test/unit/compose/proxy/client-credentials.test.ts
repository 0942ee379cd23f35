import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { endingCredentials, noteEnds } from '../../../../src/compose/proxy/readiness.ts'
import { resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS } from '../../../support/load/documents/build.ts'
import { createRecordingMetrics, createTestSecrets } from '../../../support/ports.ts'
import { TLS } from '../../../support/tls.ts'

test('the figures say when what a config authenticates with ends, once for all of its routes', () => {
  const key = { secretRef: { name: 'tls', key: 'key' }, certificateSecretRef: { name: 'tls', key: 'cert' } }
  const clientAuth = { method: 'privateKeyJwt', clientId: 'us', key }
  const auth = { type: 'tokenExchange', tokenExchange: { ...SPECS.tokenExchange.tokenExchange, clientAuth } }
  const routes = [route({ resourceUrl: 'https://a.example' }), route({ name: 'b', path: '/b' })]
  const { config } = resolveProxy(load(externalAuth(auth, 'token'), proxy({ auth: OAUTH, routes })))
  if (config === undefined) throw new Error('it does not load')
  const secrets = createTestSecrets({ 'tls/cert': TLS.client.cert.toString() })
  const ending = endingCredentials(config, { secrets, tokenFile: () => secrets.get('no/file') })
  expect(ending).toMatchObject([{ of: 'config', name: 'token', kind: 'certificate', label: 'tls/cert' }])
  const metrics = createRecordingMetrics()
  noteEnds(ending, metrics)
  const endMs = new X509Certificate(TLS.client.cert).validToDate.getTime()
  expect(metrics.value('extauth_client_credential_expires_seconds', 'token', 'certificate')).toBe(endMs / 1_000)
})

test('credentials for introspection are monitored for expiry, too; of one name the first is reported', () => {
  const tls = { certificateSecretRef: { name: 'tls', key: 'cert' }, keySecretRef: { name: 'tls', key: 'key' } }
  const provider = {
    ...OAUTH.oauth.providers[0],
    introspectionUrl: 'https://idp.example.com/introspect',
    clientAuth: { method: 'tlsClient', clientId: 'us', tls },
  }
  const auth = { ...OAUTH, oauth: { ...OAUTH.oauth, providers: [provider] } }
  const routes = [route({ resourceUrl: 'https://a.example' }), route({ name: 'b', path: '/b' })]
  const { config, problems } = resolveProxy(load(externalAuth(SPECS.unauthenticated), proxy({ auth, routes })))
  if (config === undefined) throw new Error(JSON.stringify(problems))
  const secrets = createTestSecrets({ 'tls/cert': TLS.client.cert.toString() })
  const ending = endingCredentials(config, { secrets, tokenFile: () => secrets.get('no/file') })
  const metrics = createRecordingMetrics()
  const [one] = ending
  if (one === undefined) throw new Error('nothing ends')
  expect(one).toMatchObject({ of: 'provider', name: provider.name, kind: 'certificate', label: 'tls/cert' })
  noteEnds([one, { ...one, endsAtMs: 1_000 }, { ...one, endsAtMs: 9_000 }], metrics)
  expect(metrics.value('extauth_client_credential_expires_seconds', one.name, 'certificate')).toBe(1)
})

test('what upstreams of an authorization server are shown has an end, too', () => {
  const tls = { certificateSecretRef: { name: 'tls', key: 'cert' }, keySecretRef: { name: 'tls', key: 'key' } }
  const { embeddedAuthServer } = SPECS.embeddedAuthServer
  const [upstream] = embeddedAuthServer.upstreamProviders
  const oidcConfig = {
    ...upstream?.oidcConfig,
    clientId: undefined,
    clientAuth: { method: 'tlsClient', clientId: 'us', tls },
  }
  const auth = {
    type: 'embeddedAuthServer',
    embeddedAuthServer: { ...embeddedAuthServer, upstreamProviders: [{ ...upstream, oidcConfig }] },
  }
  const routes = [route({ authServerRef: { name: 'login' }, resourceUrl: 'https://a.example' })]
  const { config, problems } = resolveProxy(
    load(externalAuth(auth, 'login'), externalAuth(SPECS.unauthenticated), proxy({ routes })),
  )
  if (config === undefined) throw new Error(JSON.stringify(problems))
  const secrets = createTestSecrets({ 'tls/cert': TLS.client.cert.toString() })
  const ending = endingCredentials(config, { secrets, tokenFile: () => secrets.get('no/file') })
  expect(ending).toMatchObject([{ of: 'upstream', name: upstream?.name, kind: 'certificate', label: 'tls/cert' }])
})
