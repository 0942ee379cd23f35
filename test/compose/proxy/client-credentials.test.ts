import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { endingCredentials, noteEnds } from '../../../src/compose/proxy/client-credentials.ts'
import { resolveProxy } from '../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS } from '../../load/documents/build.ts'
import { createRecordingMetrics, createTestSecrets } from '../../support/ports.ts'
import { TLS } from '../../support/tls.ts'

test('the figures say when what a config authenticates with ends, once for all of its routes', () => {
  const key = { secretRef: { name: 'tls', key: 'key' }, certificateSecretRef: { name: 'tls', key: 'cert' } }
  const clientAuth = { method: 'privateKeyJwt', clientId: 'us', key }
  const auth = { type: 'tokenExchange', tokenExchange: { ...SPECS.tokenExchange.tokenExchange, clientAuth } }
  const routes = [route({ resourceUrl: 'https://a.example' }), route({ name: 'b', path: '/b' })]
  const { config } = resolveProxy(load(externalAuth(auth, 'token'), proxy({ auth: OAUTH, routes })))
  if (config === undefined) throw new Error('it does not load')
  const secrets = createTestSecrets({ 'tls/cert': TLS.client.cert.toString() })
  const ending = endingCredentials(config, { secrets, tokenFile: () => secrets.get('no/file') })
  expect(ending).toMatchObject([{ config: 'token', kind: 'certificate', label: 'tls/cert' }])
  const metrics = createRecordingMetrics()
  noteEnds(ending, metrics)
  const endMs = new X509Certificate(TLS.client.cert).validToDate.getTime()
  expect(metrics.value('extauth_client_credential_expires_seconds', 'token', 'certificate')).toBe(endMs / 1_000)
})
