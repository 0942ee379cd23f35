import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, Failure, monotonicNow, Secret, type SecretHandle } from '../../src/core/index.ts'
import { createOutbound } from '../../src/net/index.ts'
import { upstreamProvider } from '../../src/resources/upstream/upstream-provider.ts'
import { createUpstream, type Upstream, type UpstreamLeg } from '../../src/upstreams/index.ts'
import type { Keycloak } from './server.ts'
import { visit } from './visit.ts'
import type { World } from './world.ts'

const SECRET = 'secret: of/us'
const REDIRECT = 'https://mcp.example.com/oauth/callback'
const clock = { now: () => Date.now() }

const PKCE = { 'pkce.code.challenge.method': 'S256' }

const client = (clientId: string, more: object) => ({
  clientId,
  enabled: true,
  redirectUris: [REDIRECT],
  standardFlowEnabled: true,
  attributes: PKCE,
  ...more,
})

/** A person with a password. */
export const ALICE = {
  username: 'alice',
  enabled: true,
  email: 'alice@example.com',
  emailVerified: true,
  firstName: 'Alice',
  lastName: 'Example',
  realmRoles: ['offline_access'],
  credentials: [{ type: 'password', value: 'alice' }],
}

/** A realm with one user, single-use refresh tokens, and a PKCE client for each authentication method. */
export const peerRealm = ({ jwks }: World): object => ({
  enabled: true,
  revokeRefreshToken: true,
  refreshTokenMaxReuse: 0,
  clients: [
    client('us', { secret: SECRET, clientAuthenticatorType: 'client-secret' }),
    client('public', { publicClient: true }),
    client('signed', {
      clientAuthenticatorType: 'client-jwt',
      attributes: { ...PKCE, 'use.jwks.string': 'true', 'jwks.string': JSON.stringify(jwks) },
    }),
    client('in-tls', {
      clientAuthenticatorType: 'client-x509',
      attributes: { ...PKCE, 'x509.subjectdn': 'CN=mcp-extauth' },
    }),
  ],
  users: [ALICE],
})

const ref = (key: string) => ({ name: 'keycloak', key })

/** How each of them says who it is, in an `oidcConfig`. */
export const LOGINS: Readonly<Record<string, object>> = {
  us: { clientId: 'us', clientSecretRef: ref('login-secret') },
  public: { clientId: 'public' },
  signed: { clientAuth: { method: 'privateKeyJwt', clientId: 'signed', key: { secretRef: ref('ES256.jwk') } } },
  'in-tls': {
    clientAuth: {
      method: 'tlsClient',
      clientId: 'in-tls',
      tls: { certificateSecretRef: ref('tls.crt'), keySecretRef: ref('tls.key') },
    },
  },
}

/** Logs in as alice in a browser. Returns the callback parameters. */
async function logIn(url: URL, ca: Buffer): Promise<URLSearchParams> {
  const page = await visit(url.href, { ca })
  const action = /<form[^>]*action="([^"]+)"/.exec(page.body)?.[1]?.replaceAll('&amp;', '&')
  if (action === undefined) throw new Error(`Keycloak shows no login form (${page.status})`)
  const cookie = page.cookies.map((text) => text.split(';')[0]).join('; ')
  const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded' }
  const { location, status } = await visit(action, { ca, headers }, 'username=alice&password=alice')
  if (location === undefined) throw new Error(`Keycloak does not log in (${status})`)
  return new URL(location).searchParams
}

const handle = (label: string, value: string): SecretHandle => ({
  label,
  current: () => new Secret(value),
  version: 1,
  refresh: () => Promise.resolve(false),
})

function open({ realms, authority }: Keycloak, { directory }: World, clientId: string): Upstream {
  const kept = (key: string): string => readFileSync(path.join(directory, 'secrets', 'keycloak', key), 'utf8')
  const values: Readonly<Record<string, string>> = { ca: authority.pem.toString(), 'login-secret': SECRET }
  const quiet = () => undefined
  const provider = upstreamProvider().parse({
    name: 'keycloak',
    type: 'oidc',
    caBundleRef: ref('ca'),
    oidcConfig: {
      issuerUrl: realms.peer,
      ...LOGINS[clientId],
      scopes: ['openid', 'offline_access', 'profile', 'email'],
    },
  })
  return createUpstream(provider, {
    clock,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    secrets: { handle: ({ key }) => handle(`keycloak/${key}`, values[key] ?? kept(key)) },
    tokenFile: () => handle('no/file', ''),
    outbound: (options) => createOutbound({ ...options, clock, breaker: false, deadlineMs: 30_000 }),
  })
}

/** Logs in through a client, refreshes, and replays the used refresh token. Returns the problems. */
export async function askLogin(keycloak: Keycloak, world: World, clientId: string): Promise<readonly string[]> {
  const upstream = open(keycloak, world, clientId)
  const random = () => randomBytes(32).toString('base64url')
  const leg: UpstreamLeg = {
    state: random(),
    nonce: random(),
    codeVerifier: new Secret(random()),
    redirectUri: REDIRECT,
  }
  const wrong: string[] = []
  const expect = (holds: boolean, what: string) => void (holds || wrong.push(what))
  try {
    const came = await logIn(await upstream.authorizationUrl(leg), keycloak.authority.pem)
    const { tokens, subject, claims } = await upstream.finish(leg, came)
    expect(claims['email'] === 'alice@example.com' && claims['email_verified'] === true, 'e-mail')
    expect(claims['name'] === 'Alice Example' && claims['preferred_username'] === 'alice', 'name')
    expect((tokens.expiresAtMs ?? 0) > clock.now() && tokens.refreshToken !== undefined, 'tokens')
    const next = await upstream.refresh(tokens, subject, after(monotonicNow(), 10_000))
    expect(next.claims['sub'] === subject, 'claims after a refresh')
    expect(next.tokens.refreshToken?.equals(tokens.refreshToken ?? '') === false, 'rotation')
    const replayed = await upstream
      .refresh(tokens, subject, after(monotonicNow(), 10_000))
      .catch((error: unknown) => error)
    expect(replayed instanceof Failure && replayed.code === 'no_session', 'a used refresh token')
  } finally {
    await upstream.close()
  }
  return wrong
}
