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
let target: Site
let callers: Awaited<ReturnType<typeof identityProvider>>
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  folder = await openFolder()
  backend = await site({ '/mcp': mcp() })
  target = await site({ '/token': () => ({ status: 400, body: { error: 'invalid_grant' } }) })
  callers = await identityProvider()
  open.push(backend, target, callers)
  await folder.write('secrets/client/secret', 'sesame')
  await folder.write('ca.pem', TLS.ca.toString())
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

/** The result of `check` for an identity provider with this response to an invalid ID token. */
async function exchangeLine(answering: Answering, more: object = {}) {
  const idp = await site({ '/token': answering }, SERVER)
  open.push(idp)
  const xaa = {
    idpTokenUrl: `${idp.url}/token`,
    idpCaCertPath: 'ca.pem',
    idpClientId: 'login',
    idpClientSecretRef: { name: 'client', key: 'secret' },
    targetTokenUrl: `${target.url}/token`,
    targetClientId: 'us-there',
    targetAudience: target.url,
    ...more,
  }
  const config = documents({ target: `${backend.url}/mcp` }, { type: 'xaa', xaa }, { auth: oauth(callers.url) })
  await folder.write('proxy.yaml', config)
  const { checks, out } = await folder.check()
  expect(out).not.toContain('sesame')
  return checks.find(({ check, subject }) => check === 'exchange' && subject === 'a')
}

describe('extauth check sends an invalid ID token to an identity provider', () => {
  it('which it refuses once it has taken the client', async () => {
    expect(await exchangeLine(() => ({ status: 400, body: { error: 'invalid_grant' } }))).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('accepts the client login and rejects an invalid token') as string,
    })
  })

  it.each<[string, Answering, RegExp]>([
    ['the secret is wrong', () => ({ status: 401, body: { error: 'invalid_client' } }), /^config_error: /],
    ['it gives no assertions', () => ({ status: 400, body: { error: 'unsupported_grant_type' } }), /^config_error: /],
    ['there is nothing', () => ({ status: 404 }), /^config_error: .*answered 404/],
    [
      'it gives an access token',
      () => ({ body: { access_token: 'a', token_type: 'Bearer', expires_in: 60 } }),
      /^exchange_failed: .*token_type is not N_A/,
    ],
    ['it is broken', () => ({ status: 500 }), /^identity_provider_unavailable/],
  ])('%s', async (_what, answering, detail) => {
    const line = await exchangeLine(answering)
    expect(line).toMatchObject({ status: 'failed', detail: expect.stringMatching(detail) as string })
  })
})
