import { afterAll, beforeAll, expect, it } from 'vitest'
import { createKey } from '../../../support/upstreams/idp.ts'
import { TLS } from '../../../support/tls.ts'
import { documents, type Folder, openFolder, type Site, site } from '../../../support/examine/check/rig.ts'

let folder: Folder
let backend: Site
let issuer: Site
beforeAll(async () => {
  folder = await openFolder()
  await folder.write('secrets/idp/ca', TLS.ca.toString())
  backend = await site({})
  const { jwk } = await createKey('ES256')
  const document = () => ({ body: { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` } })
  issuer = await site(
    {
      '/.well-known/openid-configuration': document,
      '/jwks': () => ({ body: { keys: [jwk] } }),
      '/empty': () => ({ body: { keys: [] } }),
    },
    { cert: TLS.server.cert.toString(), key: TLS.server.key.toString() },
  )
})
afterAll(async () => {
  await Promise.all([backend.close(), issuer.close()])
  await folder.remove()
})

/** Results of `extauth check` for the keys of assertion issuers. */
async function check(more: object) {
  const embeddedAuthServer = {
    issuer: 'http://localhost:8080',
    upstreamProviders: [{ name: 'up', type: 'oidc', oidcConfig: { issuerUrl: 'https://127.0.0.1:1', clientId: 'a' } }],
    ...more,
  }
  const spec = { listen: { address: '127.0.0.1:8080' } }
  const config = documents({ target: `${backend.url}/mcp` }, { type: 'embeddedAuthServer', embeddedAuthServer }, spec)
  await folder.write('proxy.yaml', config)
  const { checks } = await folder.check()
  return checks.filter(({ check: name, subject }) => name === 'keys' && subject !== 'up')
}

const caBundleRef = { name: 'idp', key: 'ca' }

it('extauth check fetches the keys of every assertion issuer once', async () => {
  const ours = { issuer: issuer.url, caBundleRef, match: 'true' }
  const found = await check({
    identityAssertions: { issuers: [{ issuerUrl: issuer.url, caBundleRef }] },
    workloads: [ours, { ...ours, match: "claims.sub == 'x'" }, { ...ours, jwksUrl: `${issuer.url}/empty` }],
    trustedIssuers: [
      {
        issuerUrl: `${issuer.url}/nowhere`,
        caBundleRef,
        jwtBearerGrant: {
          maxAssertionAge: '5m',
          subjectBindings: [{ subject: 'x', allowedResources: ['http://localhost:8080/mcp'] }],
        },
      },
    ],
  })
  const results = found.map(({ subject, status, detail }) => [subject, status, detail])
  expect(results).toHaveLength(3)
  expect(results).toEqual(
    expect.arrayContaining([
      [issuer.url, 'failed', 'the key set has no signature key'],
      [issuer.url, 'ok', '1 for assertions'],
      [`${issuer.url}/nowhere`, 'failed', expect.stringContaining('404') as unknown],
    ]),
  )
  expect(found.find(({ subject }) => subject.endsWith('/nowhere'))).toMatchObject({
    remedy: expect.stringContaining('jwksUrl') as unknown,
  })
})

it('without its authorities an issuer is not asked', async () => {
  const found = await check({
    workloads: [{ issuer: issuer.url, caBundleRef: { name: 'idp', key: 'none' }, match: 'true' }],
  })
  expect(found).toMatchObject([{ status: 'skipped', detail: 'not tried: its CA certificates are unusable' }])
})
