import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { ACCESS, REFRESH, startIdp, type Idp, SUBJECT } from '../../support/upstreams/idp.ts'
import { callback, createRig, LEG, SECRET } from '../../support/upstreams/rig.ts'

const sockets = createSockets()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
  idp.metadata = { revocation_endpoint: `${idp.url}/revoke` }
})
afterEach(() => sockets.closeAll())

async function loggedIn(config: Readonly<Record<string, unknown>> = {}) {
  const upstream = createRig(sockets).oidc(idp, config)
  const { tokens } = await upstream.finish(LEG, callback(idp))
  return { upstream, tokens }
}
const asked = () => idp.asked.filter(({ path }) => path === '/revoke')

describe('a revocation at an OIDC upstream', () => {
  it('shows the refresh token, then the access token, as the client to which they were given', async () => {
    idp.revocation = { status: 200 }
    const { upstream, tokens } = await loggedIn()
    expect(await upstream.revoke?.(tokens, SUBJECT)).toBe(true)
    expect(asked()).toMatchObject([
      { method: 'POST', form: { token: REFRESH, token_type_hint: 'refresh_token' } },
      { method: 'POST', form: { token: ACCESS, token_type_hint: 'access_token' } },
    ])
    const [id, secret] = ['us', SECRET].map((text) => new URLSearchParams({ text }).toString().slice('text='.length))
    expect(asked()[0]?.headers.authorization).toBe(`Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`)
  })

  it('shows the access token where there is no other, and the client in the form where it has no secret', async () => {
    idp.revocation = { status: 200 }
    idp.tokens = { refresh_token: undefined }
    const { upstream, tokens } = await loggedIn({ clientSecretRef: undefined })
    await upstream.revoke?.(tokens, SUBJECT)
    const form = { token: ACCESS, token_type_hint: 'access_token', client_id: 'us' }
    expect(asked().map((entry) => entry.form)).toEqual([form])
  })

  it.each(['http://idp.example.com/revoke', 'revoke', undefined])('is none where the metadata say %j', async (url) => {
    idp.metadata = { revocation_endpoint: url }
    const { upstream, tokens } = await loggedIn()
    expect(await upstream.revoke?.(tokens, SUBJECT)).toBe(false)
    expect(asked()).toEqual([])
  })

  it('succeeds where only the refresh token can be revoked', async () => {
    idp.revocation = ({ form }) =>
      form['token'] === REFRESH ? { status: 200 } : { status: 400, body: { error: 'unsupported_token_type' } }
    const { upstream, tokens } = await loggedIn()
    expect(await upstream.revoke?.(tokens, SUBJECT)).toBe(true)
    expect(asked()).toHaveLength(2)
  })

  it('reports a rejection, without the text of the upstream', async () => {
    idp.revocation = { status: 400, body: { error: 'unsupported_token_type', error_description: 'secret words' } }
    const { upstream, tokens } = await loggedIn()
    await expect(upstream.revoke?.(tokens, SUBJECT)).rejects.toMatchObject({
      code: 'identity_provider_error',
      detail: expect.stringMatching(/^revocation endpoint answered 400 at https:.*\/revoke$/) as string,
    })
  })
})
