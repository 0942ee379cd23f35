import { createPublicKey, X509Certificate } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { decodeJwt, jwtVerify, UnsecuredJWT } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { createManualClock, createRecordingLog, createTestSecrets, START_MS } from '../../support/ports.ts'
import { networked } from '../../support/authenticate/network.ts'
import { refusalOf } from '../../support/authenticate/world.ts'
import { createSockets, type Sockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { ACCESS, type Asked, type Idp, REFRESH, startIdp, SUBJECT } from '../../support/upstreams/idp.ts'
import { createRig, IN_TIME, NO_FILES } from '../../support/upstreams/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const CA_FILE = fileURLToPath(new URL('../../fixtures/tls/ca.pem', import.meta.url))
const ref = (key: string) => ({ name: 'own', key })
const SECRETS = {
  'own/secret': 's3cret',
  'own/cert': TLS.client.cert.toString(),
  'own/cert-key': TLS.client.key.toString(),
}
const TOKEN = new UnsecuredJWT({ exp: START_MS / 1_000 + 600 }).encode().replace(/\.$/, '.c2ln')
const TOKENS = {
  accessToken: new Secret(ACCESS),
  refreshToken: new Secret(REFRESH),
  idToken: undefined,
  expiresAtMs: undefined,
  idTokenExpiresAtMs: undefined,
  scopes: [],
}
const BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Requests of a client, one per call of `ask`. */
interface Opened {
  readonly ask: () => Promise<unknown>
  readonly secrets: ReturnType<typeof createTestSecrets>
  readonly output: () => string
}
interface Files {
  readonly tokenFile?: () => ReturnType<ReturnType<typeof createTestSecrets>['handle']>
}

/** OAuth clients other than credential types: they authenticate at `path`. */
interface Party {
  readonly name: string
  readonly path: string
  readonly audience: (idp: Idp) => string
  readonly open: (sockets: Sockets, idp: Idp, clientAuth: object, files: Files) => Opened
}

const upstream =
  (kind: 'oidc' | 'oauth2', work: 'refresh' | 'revoke'): Party['open'] =>
  (at, idp, clientAuth, files) => {
    idp.metadata = { ...idp.metadata, revocation_endpoint: `${idp.url}/revoke` }
    const rig = createRig(at, {}, { ...files, secrets: SECRETS })
    const provider = rig[kind](idp, { clientId: undefined, clientSecretRef: undefined, clientAuth })
    const ask = async () =>
      work === 'refresh' ? provider.refresh(TOKENS, SUBJECT, IN_TIME) : provider.revoke?.(TOKENS, SUBJECT)
    return { ask, secrets: rig.secrets, output: () => rig.log.lines.join('\n') }
  }

/** An unknown token presented by a caller. */
const introspection: Party['open'] = (at, idp, clientAuth, files) => {
  const [clock, log] = [createManualClock(), createRecordingLog()]
  const secrets = createTestSecrets(SECRETS)
  const provider = {
    name: 'corp',
    issuerUrl: idp.url,
    audience: 'us',
    introspectionUrl: `${idp.url}/introspect`,
    caCertPath: CA_FILE,
    clientAuth,
  }
  const authenticator = at.closing(networked([provider], { clock, log, client: { ...NO_FILES, ...files, secrets } }))
  const ask = async () => {
    const refusal = await refusalOf(authenticator, 'opaque')
    if (refusal.code !== 'invalid_token') throw refusal
  }
  return { ask, secrets, output: () => log.lines.join('\n') }
}

const PARTIES: readonly Party[] = [
  { name: 'an OIDC upstream', path: '/token', audience: ({ url }) => url, open: upstream('oidc', 'refresh') },
  {
    name: 'an OAuth2 upstream',
    path: '/token',
    audience: ({ url }) => `${url}/token`,
    open: upstream('oauth2', 'refresh'),
  },
  { name: 'a revocation', path: '/revoke', audience: ({ url }) => url, open: upstream('oidc', 'revoke') },
  { name: 'introspection', path: '/introspect', audience: ({ url }) => url, open: introspection },
]

describe.each(PARTIES)('$name', ({ path, audience, open }) => {
  // A revocation sends the refresh token, then the access token.
  const requests = path === '/revoke' ? 2 : 1
  /** Asks once; gives what was asked there. */
  const shownBy = async (clientAuth: object, files: Files = {}, idp?: Idp): Promise<[Asked, Idp]> => {
    const at = idp ?? (await startIdp(sockets))
    at.revocation = { body: '' }
    const { ask, output } = open(sockets, at, clientAuth, files)
    await ask()
    const asked = at.asked.filter((one) => one.path === path)
    expect(asked).toHaveLength(requests)
    expect(output()).not.toContain('s3cret')
    const [one] = asked
    if (one === undefined) throw new Error('nothing was asked')
    return [one, at]
  }
  const clientFields = ({ form }: Asked) =>
    Object.fromEntries(Object.entries(form).filter(([name]) => name.startsWith('client_')))

  it.each<[string, object, Readonly<Record<string, string>>, string | undefined]>([
    [
      'id and secret by Basic',
      { method: 'clientSecretBasic', secretRef: ref('secret') },
      {},
      `Basic ${Buffer.from('us:s3cret').toString('base64')}`,
    ],
    [
      'id and secret in the body',
      { method: 'clientSecretPost', secretRef: ref('secret') },
      { client_id: 'us', client_secret: 's3cret' },
      undefined,
    ],
    ['its id alone', { method: 'none' }, { client_id: 'us' }, undefined],
    [
      'the token in a file',
      { method: 'tokenFile', tokenFile: {} },
      { client_id: 'us', client_assertion_type: BEARER, client_assertion: TOKEN },
      undefined,
    ],
  ])('shows %s', async (_what, how, form, authorization) => {
    const tokenFile = () => createTestSecrets({ 'run/token': TOKEN }).handle({ name: 'run', key: 'token' })
    const [asked] = await shownBy({ clientId: 'us', ...how }, { tokenFile })
    expect(clientFields(asked)).toEqual(form)
    expect(asked.headers.authorization).toBe(authorization)
  })

  it('signs an assertion for the server, or for the configured audience', async () => {
    const key = { secretRef: ref('cert-key'), certificateSecretRef: ref('cert') }
    const signed = { method: 'privateKeyJwt', clientId: 'us', key }
    const [asked, idp] = await shownBy(signed)
    const { client_assertion = '', ...rest } = clientFields(asked)
    expect(rest).toEqual({ client_id: 'us', client_assertion_type: BEARER })
    const { publicKey } = new X509Certificate(TLS.client.cert)
    const { payload } = await jwtVerify(
      client_assertion,
      createPublicKey(publicKey.export({ type: 'spki', format: 'pem' })),
      {
        audience: audience(idp),
        issuer: 'us',
        subject: 'us',
        currentDate: new Date(START_MS),
      },
    )
    expect(payload.jti).toBeTypeOf('string')
    const [request] = await shownBy({ ...signed, assertionAudience: 'urn:idp' })
    expect(decodeJwt(clientFields(request)['client_assertion'] ?? '').aud).toBe('urn:idp')
  })

  it('shows a certificate in TLS to a server that asks for one', async () => {
    const tls = { certificateSecretRef: ref('cert'), keySecretRef: ref('cert-key') }
    const idp = await startIdp(sockets, { requestCert: true, rejectUnauthorized: false, ca: TLS.ca })
    const [asked] = await shownBy({ method: 'tlsClient', clientId: 'us', tls }, {}, idp)
    expect([clientFields(asked), asked.shown]).toEqual([{ client_id: 'us' }, 'client'])
    const others = idp.asked.filter((one) => one.path !== path)
    expect(others.every(({ shown }) => shown === undefined)).toBe(true)
  })

  it('looks at its secret again when it is refused, and shows the new one once', async () => {
    const idp = await startIdp(sockets)
    const refused = { status: 401, body: { error: 'invalid_client' } }
    const { ask, secrets } = open(
      sockets,
      idp,
      { method: 'clientSecretPost', clientId: 'us', secretRef: ref('secret') },
      {},
    )
    idp.token = ({ form }) => (form['client_secret'] === 'renewed' ? undefined : refused)
    idp.revocation = (asked) => (asked.form['client_secret'] === 'renewed' ? { body: '' } : refused)
    idp.introspection = (asked) => (asked.form['client_secret'] === 'renewed' ? undefined : refused)
    secrets.get('own/secret').pending = 'renewed'
    await ask()
    const shown = idp.asked.filter((one) => one.path === path).map(({ form }) => form['client_secret'])
    expect(shown).toEqual(['s3cret', ...Array.from({ length: requests }, () => 'renewed')])
  })

  it('sends nothing where the token is of no use', async () => {
    const idp = await startIdp(sockets)
    const ended = new UnsecuredJWT({ exp: START_MS / 1_000 - 1 }).encode().replace(/\.$/, '.c2ln')
    const tokenFile = () => createTestSecrets({ 'run/token': ended }).handle({ name: 'run', key: 'token' })
    const { ask } = open(sockets, idp, { method: 'tokenFile', clientId: 'us', tokenFile: {} }, { tokenFile })
    await expect(ask()).rejects.toMatchObject({ code: 'secret_unavailable' })
    expect(idp.count(path)).toBe(0)
  })
})

describe('an OIDC upstream', () => {
  it('is called at its mTLS aliases by a client with a certificate', async () => {
    const tls = { certificateSecretRef: ref('cert'), keySecretRef: ref('cert-key') }
    const idp = await startIdp(sockets, { requestCert: true, rejectUnauthorized: false, ca: TLS.ca })
    idp.revocation = { body: '' }
    idp.metadata = {
      token_endpoint: 'https://localhost:1/token',
      mtls_endpoint_aliases: { token_endpoint: `${idp.url}/token`, userinfo_endpoint: 'https://localhost:1/userinfo' },
    }
    const { ask } = upstream('oidc', 'refresh')(sockets, idp, { method: 'tlsClient', clientId: 'us', tls }, {})
    await ask()
    expect(idp.count('/token')).toBe(1)
  })
  it('is called at its regular endpoints without a certificate, with the configured method', async () => {
    const idp = await startIdp(sockets)
    idp.metadata = {
      mtls_endpoint_aliases: { token_endpoint: 'https://localhost:1/token' },
      token_endpoint_auth_methods_supported: ['client_secret_post'],
    }
    const client = { method: 'clientSecretBasic', clientId: 'us', secretRef: ref('secret') }
    await upstream('oidc', 'refresh')(sockets, idp, client, {}).ask()
    const asked = idp.asked.find((one) => one.path === '/token')
    expect(asked?.headers.authorization).toBe(`Basic ${Buffer.from('us:s3cret').toString('base64')}`)
  })

  it('is shown assertions for its token endpoint at its revocation endpoint, too', async () => {
    const idp = await startIdp(sockets)
    idp.revocation = { body: '' }
    const key = { secretRef: ref('cert-key') }
    const client = { method: 'privateKeyJwt', clientId: 'us', key, assertionAudience: 'tokenEndpoint' }
    await upstream('oidc', 'revoke')(sockets, idp, client, {}).ask()
    const asked = idp.asked.find((one) => one.path === '/revoke')
    expect(decodeJwt(asked?.form['client_assertion'] ?? '').aud).toBe(`${idp.url}/token`)
  })
})
