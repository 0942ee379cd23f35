import { generateKeyPairSync } from 'node:crypto'
import {
  Client,
  ClientCredentialsProvider,
  type OAuthClientProvider,
  PrivateKeyJwtProvider,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { JOB, JWT_BEARER } from '../../../support/authserver/grants/rig.ts'
import { createSockets } from '../../../support/sockets.ts'
import { startIdp } from '../../../support/upstreams/idp.ts'
import { call } from '../../../support/e2e/authserver/application.ts'
import { newSigningKey } from '../../../support/e2e/authserver/fleet.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

// Official clients without a person, with nothing but the URL of the MCP server and what their scenarios of the conformance
// suite have (auth/client-credentials-basic and -jwt, auth/wif-jwt-bearer): our metadata lead them to our server.

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const SUBJECT = 'system:serviceaccount:agents:nightly'

async function open() {
  const idp = await startIdp(sockets)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const [signing, pem] = [newSigningKey(), publicKey.export({ type: 'spki', format: 'pem' }).toString()]
  const world = await openWorld(sockets, {
    spec: {
      signingKeySecretRefs: [{ name: 'as', key: 'signing' }],
      clients: [
        { clientId: JOB.id, clientSecretRef: { name: 'clients', key: 'job' } },
        { clientId: 'signing-job', publicKeys: [pem] },
      ],
      workloads: [{ issuer: idp.url, caBundleRef: { name: 'idp', key: 'ca' }, match: `claims.sub == "${SUBJECT}"` }],
    },
    files: () => ({ 'secrets/as/signing': signing, 'secrets/clients/job': JOB.secret }),
  })
  const connect = async (authProvider: OAuthClientProvider) => {
    const client = sockets.closing(new Client({ name: 'official', version: '2.0.0' }))
    await client.connect(new StreamableHTTPClientTransport(new URL(`${world.url}/mcp`), { authProvider }))
    return client
  }
  const tokenOf = async (claims: object = {}) => {
    const now = Math.floor(Date.now() / 1_000)
    const said = { iss: idp.url, sub: SUBJECT, aud: world.url, iat: now, exp: now + 300, ...claims }
    return idp.key.sign(said, { typ: 'JWT' })
  }
  return { world, connect, tokenOf, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** What the extension for workload identity federation asks of a client: the platform's token as assertion, and nothing else. */
class Workload implements OAuthClientProvider {
  readonly redirectUrl = undefined
  readonly clientMetadata = { redirect_uris: [], grant_types: [JWT_BEARER], token_endpoint_auth_method: 'none' }
  readonly asked: string[] = []
  readonly #tokenFile: () => Promise<string>
  #tokens: ReturnType<OAuthClientProvider['tokens']>

  constructor(tokenFile: () => Promise<string>) {
    this.#tokenFile = tokenFile
  }
  clientInformation() {
    return { client_id: 'conformance-wif-workload' }
  }
  tokens() {
    return this.#tokens
  }
  saveTokens(tokens: NonNullable<Awaited<ReturnType<OAuthClientProvider['tokens']>>>) {
    this.#tokens = tokens
  }
  redirectToAuthorization() {
    throw new Error('no user can log in')
  }
  saveCodeVerifier() {
    // There is none.
  }
  codeVerifier(): string {
    throw new Error('there is none')
  }
  async prepareTokenRequest() {
    const assertion = await this.#tokenFile()
    this.asked.push(assertion)
    return new URLSearchParams({ grant_type: JWT_BEARER, assertion })
  }
}

describe('an official client gets in without anybody who logs in', () => {
  it('by client_secret_basic', async () => {
    const { world, connect } = await open()
    const credentials = { clientId: JOB.id, clientSecret: JOB.secret, expectedIssuer: world.url }
    const provider = new ClientCredentialsProvider(credentials)
    expect(await call(await connect(provider))).toContain('tools/call')
    expect(decodeJwt(provider.tokens()?.access_token ?? '')).toMatchObject({ gty: 'client_credentials' })
    const wrong = new ClientCredentialsProvider({ ...credentials, clientSecret: 'wrong' })
    await expect(connect(wrong)).rejects.toThrow(/client secret is wrong/)
  })

  it('by private_key_jwt', async () => {
    const { world, connect, privateKey } = await open()
    const provider = new PrivateKeyJwtProvider({
      clientId: 'signing-job',
      privateKey,
      algorithm: 'ES256',
      expectedIssuer: world.url,
    })
    expect(await call(await connect(provider))).toContain('tools/call')
    expect(decodeJwt(provider.tokens()?.access_token ?? '')).toMatchObject({ client_id: 'signing-job' })
  })

  it('by the token that its platform gave it', async () => {
    const { world, connect, tokenOf } = await open()
    const provider = new Workload(tokenOf)
    expect(await call(await connect(provider))).toContain('tools/call')
    const tokens = await provider.tokens()
    expect(decodeJwt(tokens?.access_token ?? '')).toMatchObject({ gty: 'workload', aud: `${world.url}/mcp` })
    expect([tokens?.refresh_token, provider.asked.length]).toEqual([undefined, 1])
  })

  it.each([
    ['for another audience', { aud: 'https://wrong.example' }],
    ['that has ended', { iat: 1_700_000_000, exp: 1_700_000_300 }],
    ['of another program', { sub: 'system:serviceaccount:agents:other' }],
  ])('and not by one %s', async (_name, claims) => {
    const { connect, tokenOf } = await open()
    await expect(connect(new Workload(() => tokenOf(claims)))).rejects.toThrow(/assertion|grant/i)
  })
})
