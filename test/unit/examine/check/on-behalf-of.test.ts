import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TLS } from '../../../support/tls.ts'
import {
  type Answering,
  documents,
  type Folder,
  identityProvider,
  mcp,
  oauth,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

const SERVER = { cert: TLS.server.cert.toString(), key: TLS.server.key.toString() }

let folder: Folder
let backend: Site
let idp: Awaited<ReturnType<typeof identityProvider>>
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  folder = await openFolder()
  backend = await site({ '/mcp': mcp() })
  idp = await identityProvider()
  open.push(backend, idp)
  await folder.write('secrets/client/secret', 'sesame')
  await folder.write('ca.pem', TLS.ca.toString())
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const says =
  (status: number, error: string, code: number): Answering =>
  () => ({ status, body: { error, error_codes: [code], error_description: `AADSTS${code}: text` } })

/** The result of `check` for a tenant with this response to an invalid token. */
async function exchangeLine(answering: Answering) {
  const tenant = await site({ '/contoso.example/oauth2/v2.0/token': answering }, SERVER)
  open.push(tenant)
  const obo = {
    authority: tenant.url,
    caCertPath: 'ca.pem',
    tenantId: 'contoso.example',
    clientId: 'me',
    clientSecretRef: { name: 'client', key: 'secret' },
    audience: 'api://backend',
  }
  const config = documents({ target: `${backend.url}/mcp` }, { type: 'obo', obo }, { auth: oauth(idp.url) })
  await folder.write('proxy.yaml', config)
  const { checks, out } = await folder.check()
  expect(out).not.toContain('sesame')
  return checks.find(({ check, subject }) => check === 'exchange' && subject === 'a')
}

describe('extauth check sends an invalid token to a tenant', () => {
  it('which it refuses once it has taken the client', async () => {
    const line = await exchangeLine(says(400, 'invalid_request', 50027))
    expect(line).toMatchObject({ status: 'ok', detail: expect.stringContaining('accepts the client me') as string })
  })

  it.each<[string, Answering, RegExp]>([
    ['the secret is wrong', says(401, 'invalid_client', 7000215), /^config_error: .*use its value.*AADSTS7000215/],
    ['the tenant does not exist', says(400, 'invalid_request', 90002), /^config_error: .*the tenant does not exist/],
    ['the resource is unknown', says(400, 'invalid_resource', 500011), /^config_error: .*does not have this resource/],
    ['it is broken', () => ({ status: 500 }), /^identity_provider_unavailable/],
  ])('%s', async (_what, answering, detail) => {
    expect(await exchangeLine(answering)).toMatchObject({
      status: 'failed',
      detail: expect.stringMatching(detail) as string,
    })
  })

  it('which it must not take', async () => {
    const line = await exchangeLine(() => ({ body: { access_token: 'a', token_type: 'Bearer', expires_in: 60 } }))
    expect(line).toMatchObject({ status: 'failed', detail: 'the token endpoint exchanged an invalid token' })
  })
})
