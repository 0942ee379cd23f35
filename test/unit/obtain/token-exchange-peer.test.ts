import { decodeJwt } from 'jose'
import { Provider, errors, type KoaContextWithOIDC } from 'oidc-provider'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Clock } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig } from '../../support/obtain/harness.ts'

const sockets = createSockets()
const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const URN = 'urn:ietf:params:oauth:token-type:access_token'
const BACKEND = 'https://backend.example/mcp'
const clock: Clock = { now: () => Date.now() }

let provider: Provider
let tokenUrl: string

/** An independent authorization server, with the grant added as documented. */
beforeEach(async () => {
  const origin = await sockets.http((request, response) => void provider.callback()(request, response))
  provider = new Provider(origin, {
    clients: [
      {
        client_id: 'proxy',
        client_secret: 'secret: of the/proxy',
        grant_types: [GRANT],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_basic',
        scope: 'tools:call',
      },
      { client_id: 'app', client_secret: 'x', redirect_uris: ['https://app.example/cb'] },
    ],
    scopes: ['openid', 'tools:call'],
    features: {
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'tools:call',
          audience: BACKEND,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    ttl: { AccessToken: 600 },
  })
  provider.registerGrantType(GRANT, exchangeGrant, ['subject_token', 'subject_token_type', 'audience', 'scope'], [])
  tokenUrl = `${origin}/token`
})
afterEach(() => sockets.closeAll())

async function exchangeGrant(ctx: KoaContextWithOIDC) {
  const { client, params } = ctx.oidc
  const value = (name: string) => String(params?.[name])
  if (client === undefined || value('subject_token_type') !== URN) throw new errors.InvalidRequest('subject token type')
  const subject = await provider.AccessToken.find(value('subject_token'))
  if (subject?.accountId === undefined) throw new errors.InvalidGrant('subject token')
  if (value('audience') !== BACKEND) throw new errors.InvalidTarget()
  const token = new provider.AccessToken({
    accountId: subject.accountId,
    client,
    gty: GRANT,
    grantId: subject.grantId,
    scope: value('scope'),
  })
  token.resourceServer = new provider.ResourceServer(BACKEND, {
    scope: 'tools:call',
    audience: BACKEND,
    accessTokenFormat: 'jwt',
    jwt: { sign: { alg: 'RS256' } },
  })
  ctx.body = {
    access_token: await token.save(),
    issued_token_type: URN,
    token_type: token.tokenType,
    expires_in: token.expiration,
    scope: token.scope,
  }
}

/** A token that the provider issued to an application for this account. */
async function issueSubjectToken(accountId: string): Promise<string> {
  const client = await provider.Client.find('app')
  if (client === undefined) throw new Error('no such client')
  const grant = new provider.Grant({ accountId, clientId: 'app' })
  grant.addOIDCScope('openid')
  return new provider.AccessToken({
    accountId,
    client,
    grantId: await grant.save(),
    gty: 'authorization_code',
    scope: 'openid',
  }).save()
}

const open = (spec: Record<string, unknown> = {}, secret = 'secret: of the/proxy') =>
  createRig(sockets, { clock, secrets: { 'idp/secret': secret } }).exchange({
    tokenUrl,
    audience: BACKEND,
    clientId: 'proxy',
    clientSecretRef: { name: 'idp', key: 'secret' },
    scopes: ['tools:call'],
    ...spec,
  })

test('oidc-provider exchanges the caller’s token for one that is for the backend', async () => {
  const { header } = open()
  for (const subject of ['alice', 'bob']) {
    const value = await header(createCaller({ subject, token: await issueSubjectToken(subject), format: 'opaque' }))
    const claims = decodeJwt(value.replace('authorization: Bearer ', ''))
    expect(claims).toMatchObject({ sub: subject, aud: BACKEND, client_id: 'proxy', scope: 'tools:call' })
  }
})

test('a token that it does not know is the caller’s fault', async () => {
  await expect(open().header(createCaller({ token: 'invalid' }))).rejects.toMatchObject({ code: 'invalid_token' })
})

test('an audience that it refuses is a matter of the caller’s rights', async () => {
  const { header } = open({ audience: 'https://other.example' })
  const caller = createCaller({ token: await issueSubjectToken('alice') })
  await expect(header(caller)).rejects.toMatchObject({ code: 'exchange_denied' })
})

test('a wrong client secret is our configuration’s fault', async () => {
  const caller = createCaller({ token: await issueSubjectToken('alice') })
  await expect(open({}, 'wrong').header(caller)).rejects.toMatchObject({ code: 'config_error' })
})
