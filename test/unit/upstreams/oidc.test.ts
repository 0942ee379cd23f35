import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { START_MS } from '../../support/ports.ts'
import { ACCESS, atHash, createKey, REFRESH, startIdp, SUBJECT, type Idp } from '../../support/upstreams/idp.ts'
import { callback, createRig, IN_TIME, LEG, SECRET } from '../../support/upstreams/rig.ts'

const sockets = createSockets()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
})
afterEach(() => sockets.closeAll())

const basic = (secret: string) =>
  `Basic ${Buffer.from(`us:${new URLSearchParams([['', secret]]).toString().slice(1)}`).toString('base64')}`

describe('an OIDC upstream', () => {
  it('asks for a code with PKCE, nonce, the default scopes and the additional parameters', async () => {
    const url = await createRig(sockets)
      .oidc(idp, { additionalAuthorizationParams: { prompt: 'consent', tenant: 'b' } })
      .authorizationUrl(LEG)
    expect(`${url.origin}${url.pathname}`).toBe(`${idp.url}/authorize`)
    expect(Object.fromEntries(url.searchParams)).toEqual({
      tenant: 'b',
      prompt: 'consent',
      response_type: 'code',
      client_id: 'us',
      redirect_uri: LEG.redirectUri,
      scope: 'openid offline_access',
      state: LEG.state,
      nonce: LEG.nonce,
      code_challenge: createHash('sha256').update(LEG.codeVerifier.reveal()).digest('base64url'),
      code_challenge_method: 'S256',
    })
  })

  it('makes tokens and an identity of a code', async () => {
    idp.claims = { groups: ['dev'] }
    const { tokens, subject, claims } = await createRig(sockets).oidc(idp).finish(LEG, callback(idp))
    expect(subject).toBe(SUBJECT)
    expect(claims).toMatchObject({ sub: SUBJECT, name: 'User One', email: 'one@example.com', groups: ['dev'] })
    expect([tokens.accessToken.reveal(), tokens.refreshToken?.reveal()]).toEqual([ACCESS, REFRESH])
    expect(tokens).toMatchObject({
      expiresAtMs: START_MS + 3_600_000,
      idTokenExpiresAtMs: START_MS + 600_000,
      scopes: ['openid', 'offline_access'],
    })
    const sent = idp.asked.find(({ path }) => path === '/token')
    expect(sent?.headers.authorization).toBe(basic(SECRET))
    expect(sent?.form).toEqual({
      grant_type: 'authorization_code',
      code: 'code-1',
      redirect_uri: LEG.redirectUri,
      code_verifier: LEG.codeVerifier.reveal(),
    })
    // Name and e-mail were in the ID token.
    expect(idp.count('/userinfo')).toBe(0)
  })

  it('names itself in the body as a public client, and puts the secret there where only that is on offer', async () => {
    await createRig(sockets).oidc(idp, { clientSecretRef: undefined }).finish(LEG, callback(idp))
    idp.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post', 'private_key_jwt'] }
    await createRig(sockets).oidc(idp).finish(LEG, callback(idp))
    const sent = idp.asked.filter(({ path }) => path === '/token')
    expect(sent.map(({ headers, form }) => [headers.authorization, form['client_id'], form['client_secret']])).toEqual([
      [undefined, 'us', undefined],
      [undefined, 'us', SECRET],
    ])
  })

  it.each(['ES256', 'PS256', 'EdDSA'])('takes an ID token signed with %s, at_hash included', async (alg) => {
    const key = await createKey(alg)
    idp.keys = [idp.key.jwk, key.jwk]
    idp.metadata = { id_token_signing_alg_values_supported: [alg] }
    const hash = atHash(ACCESS, alg === 'EdDSA' ? 512 : 256)
    idp.tokens = { id_token: await key.sign(idp.idClaims({ at_hash: hash })) }
    const { subject } = await createRig(sockets).oidc(idp).finish(LEG, callback(idp))
    expect(subject).toBe(SUBJECT)
  })

  it('fetches keys again for a key that it does not know, and discovery once an hour', async () => {
    const { oidc, clock } = createRig(sockets)
    const upstream = oidc(idp)
    await upstream.finish(LEG, callback(idp))
    const key = await createKey()
    idp.keys = [key.jwk]
    idp.tokens = { id_token: await key.sign(idp.idClaims()) }
    await upstream.finish(LEG, callback(idp))
    await upstream.finish(LEG, callback(idp))
    expect([idp.count('/jwks'), idp.count('/.well-known/openid-configuration')]).toEqual([2, 1])
    clock.advance(3_600_000)
    await upstream.authorizationUrl(LEG)
    expect(idp.count('/.well-known/openid-configuration')).toBe(2)
    // The one from before serves while there is no other.
    clock.advance(3_600_000)
    idp.discovery = { status: 503 }
    expect((await upstream.authorizationUrl(LEG)).origin).toBe(idp.url)
  })

  it('finds a token endpoint that moved, without waiting for the end of the document', async () => {
    const upstream = createRig(sockets).oidc(idp)
    idp.metadata = { token_endpoint: `${idp.url}/moved-away` }
    await upstream.authorizationUrl(LEG)
    idp.metadata = {}
    expect((await upstream.finish(LEG, callback(idp))).subject).toBe(SUBJECT)
    expect(idp.count('/.well-known/openid-configuration')).toBe(2)
  })

  it('many logins at once ask for discovery once', async () => {
    const upstream = createRig(sockets).oidc(idp)
    await Promise.all(Array.from({ length: 20 }, () => upstream.authorizationUrl(LEG)))
    expect(idp.count('/.well-known/openid-configuration')).toBe(1)
  })

  it('asks user info for a name or an e-mail that the ID token lacks, and what was signed comes first', async () => {
    idp.claims = { email: undefined, preferred_username: 'signed' }
    idp.user = { sub: SUBJECT, name: 'Other', email: 'other@example.com', preferred_username: 'other', groups: ['a'] }
    const { claims } = await createRig(sockets).oidc(idp).finish(LEG, callback(idp))
    expect(claims).toMatchObject({
      name: 'User One',
      email: 'other@example.com',
      preferred_username: 'signed',
      groups: ['a'],
    })
    expect(idp.asked.at(-1)?.headers.authorization).toBe(`Bearer ${ACCESS}`)
  })

  it('does not say of one e-mail address that it is verified because another is', async () => {
    idp.claims = { name: undefined }
    idp.user = { sub: SUBJECT, name: 'N', email: 'other@example.com', email_verified: true }
    const { claims } = await createRig(sockets).oidc(idp).finish(LEG, callback(idp))
    expect(claims).toMatchObject({ email: 'one@example.com' })
    expect(claims).not.toHaveProperty('email_verified')
  })

  it('does without name and e-mail where there is no user info', async () => {
    idp.claims = { email: undefined, name: undefined }
    idp.metadata = { userinfo_endpoint: undefined }
    const { claims } = await createRig(sockets).oidc(idp).finish(LEG, callback(idp))
    expect(claims).not.toHaveProperty('email')
  })

  it('takes user info from where userInfoOverride says, with its method, headers and fields', async () => {
    idp.claims = { name: undefined, email: undefined }
    idp.user = { oid: SUBJECT, displayName: 'Shown', mail: '', upn: 'upn@example.com' }
    const userInfoOverride = {
      endpointUrl: `${idp.url}/me`,
      httpMethod: 'POST',
      additionalHeaders: { 'X-Api-Version': '2', Authorization: 'Bearer mine', Accept: 'application/vnd.x+json' },
      fieldMapping: { subjectFields: ['oid'], nameFields: ['displayName'], emailFields: ['mail', 'upn'] },
    }
    idp.userInfo = { body: idp.user }
    const { claims } = await createRig(sockets).oidc(idp, { userInfoOverride }).finish(LEG, callback(idp))
    expect(claims).toMatchObject({ sub: SUBJECT, name: 'Shown', email: 'upn@example.com' })
    const sent = idp.asked.at(-1)
    expect(sent).toMatchObject({ method: 'POST', path: '/me' })
    expect(sent?.headers).toMatchObject({
      'x-api-version': '2',
      authorization: `Bearer ${ACCESS}`,
      accept: 'application/vnd.x+json',
    })
  })

  it('says nothing of tokens, codes and secrets in its log', async () => {
    const { oidc, log } = createRig(sockets)
    const upstream = oidc(idp)
    const { tokens } = await upstream.finish(LEG, callback(idp))
    idp.claims = { aud: 'other' }
    await upstream.refresh(tokens, SUBJECT, IN_TIME)
    const said = log.lines.join('\n')
    expect(said).toContain('aud is not the client id')
    for (const secret of [ACCESS, REFRESH, SECRET, 'code-1', LEG.state, SUBJECT]) expect(said).not.toContain(secret)
  })
})
