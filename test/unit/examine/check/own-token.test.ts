import { UnsecuredJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TLS } from '../../../support/tls.ts'
import {
  ANONYMOUS,
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

let folder: Folder
let backend: Site
let idp: Awaited<ReturnType<typeof identityProvider>>
const open: { close(): Promise<void> }[] = []
const keep = <T extends { close(): Promise<void> }>(made: T): T => {
  open.push(made)
  return made
}
const serve = async (answers: Readonly<Record<string, Answering>>) => keep(await site(answers))

beforeAll(async () => {
  folder = await openFolder()
  backend = await serve({ '/mcp': mcp() })
  idp = keep(await identityProvider())
  await folder.write('secrets/client/secret', 'sesame')
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const failedOf = async (auth: object) => {
  await folder.write('proxy.yaml', documents({ target: `${backend.url}/mcp` }, auth, { auth: oauth(idp.url) }))
  const result = await folder.check()
  expect(result.out).not.toContain('sesame')
  return { ...result, failed: result.checks.filter(({ status }) => status === 'failed') }
}

const says =
  (status: number, error: string): Answering =>
  () => ({ status, body: { error } })

const ownToken = (tokenUrl: string, more: object = {}) => ({
  type: 'clientCredentials',
  clientCredentials: { tokenUrl, clientId: 'me', clientSecretRef: { name: 'client', key: 'secret' }, ...more },
})

describe('extauth check names what is wrong with a token of the proxy’s own', () => {
  it.each<[string, Answering | undefined, RegExp]>([
    ['it does not know the client', says(401, 'invalid_client'), /^config_error: .*invalid_client/],
    ['it does not give this scope', says(400, 'invalid_scope'), /^config_error: .*invalid_scope/],
    ['it is not there', undefined, /^config_error: .*404/],
    ['it is broken', () => ({ status: 500 }), /^identity_provider_unavailable/],
    ['its answer has no token', () => ({ body: { ok: true } }), /^exchange_failed/],
  ])('%s', async (_, answering, detail) => {
    const { url } = await serve(answering === undefined ? {} : { '/token': answering })
    const { failed, code } = await failedOf(ownToken(`${url}/token`))
    expect(failed).toMatchObject([{ check: 'exchange', subject: 'a', detail: expect.stringMatching(detail) as string }])
    expect(code).toBe(1)
  })

  it('no server listens there', async () => {
    const gone = await site({})
    await gone.close()
    expect((await failedOf(ownToken(`${gone.url}/token`))).failed).toMatchObject([{ check: 'exchange.connection' }])
  })

  it('its secret is not there', async () => {
    const { failed } = await failedOf(ownToken(`${idp.url}/token`, { clientSecretRef: { name: 'no', key: 'such' } }))
    expect(failed.map(({ check }) => check)).toEqual(['secret'])
  })

  it('what it authenticates with has ended, or is not there', async () => {
    const clientOf = (clientAuth: object, url = idp.url) =>
      ownToken(`${url}/token`, { clientId: undefined, clientSecretRef: undefined, clientAuth })
    const jwt = new UnsecuredJWT({ exp: 1_000_000_000 }).encode().replace(/\.$/, '.c2ln')
    await folder.write('token', jwt)
    const ended = clientOf({ method: 'tokenFile', clientId: 'me', tokenFile: { path: 'token' } })
    expect((await failedOf(ended)).failed[0]).toMatchObject({
      check: 'file',
      detail: 'expired on 2001-09-09T01:46:40.000Z',
    })
    const nowhere = clientOf({ method: 'tokenFile', clientId: 'me', tokenFile: {} })
    expect((await failedOf(nowhere)).failed[0]).toMatchObject({
      check: 'file',
      detail: 'tokenFile has no path, and AZURE_FEDERATED_TOKEN_FILE is not set',
    })
    await folder.write('secrets/tls/cert', TLS.client.cert.toString())
    await folder.write('secrets/tls/key', TLS.client.key.toString())
    const tls = { certificateSecretRef: { name: 'tls', key: 'cert' }, keySecretRef: { name: 'tls', key: 'key' } }
    const { checks } = await failedOf(clientOf({ method: 'tlsClient', clientId: 'me', tls }, 'https://127.0.0.1:9'))
    expect(checks).toContainEqual(expect.objectContaining({ subject: 'tls/cert', status: 'ok' }))
  })

  it('all is well: shows it to the backend, without a caller', async () => {
    const { url } = await serve({ '/token': () => ({ body: { access_token: 'own', token_type: 'Bearer' } }) })
    const wants = await serve({ '/mcp': mcp('Bearer own') })
    await folder.write(
      'proxy.yaml',
      documents({ target: `${wants.url}/mcp` }, ownToken(`${url}/token`), { auth: ANONYMOUS }),
    )
    const { code, checks } = await folder.check()
    expect(checks.filter(({ check, status }) => status !== 'ok' && check !== 'clock')).toEqual([])
    expect(checks.map(({ check }) => check)).toEqual(expect.arrayContaining(['exchange', 'mcp']))
    expect(code).toBe(0)
  })
})
