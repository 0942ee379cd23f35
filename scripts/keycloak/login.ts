import { randomBytes } from 'node:crypto'
import { Failure, Secret, type SecretHandle } from '../../src/core/index.ts'
import { createOutbound } from '../../src/net/index.ts'
import { upstreamProvider } from '../../src/resources/upstream/upstream-provider.ts'
import { createUpstream, type Upstream, type UpstreamLeg } from '../../src/upstreams/index.ts'
import type { Keycloak } from './server.ts'
import { visit } from './visit.ts'

const SECRET = 'secret: of/us'
const REDIRECT = 'https://mcp.example.com/oauth/callback'
const clock = { now: () => Date.now() }

const client = (clientId: string, more: object) => ({
  clientId,
  enabled: true,
  redirectUris: [REDIRECT],
  standardFlowEnabled: true,
  attributes: { 'pkce.code.challenge.method': 'S256' },
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

/** One user, two clients that need PKCE, refresh tokens good for one use. */
export const PEER_REALM = {
  enabled: true,
  revokeRefreshToken: true,
  refreshTokenMaxReuse: 0,
  clients: [
    client('us', { secret: SECRET, clientAuthenticatorType: 'client-secret' }),
    client('public', { publicClient: true }),
  ],
  users: [ALICE],
}

/** What alice does in her browser. Gives the parameters of the way back. */
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

function open({ realms, authority }: Keycloak, clientId: string): Upstream {
  const values = new Map([
    ['ca', authority.pem.toString()],
    ['secret', SECRET],
  ])
  const quiet = () => undefined
  const provider = upstreamProvider().parse({
    name: 'keycloak',
    type: 'oidc',
    caBundleRef: { name: 'kc', key: 'ca' },
    oidcConfig: {
      issuerUrl: realms.peer,
      clientId,
      ...(clientId === 'public' ? {} : { clientSecretRef: { name: 'kc', key: 'secret' } }),
      scopes: ['openid', 'offline_access', 'profile', 'email'],
    },
  })
  return createUpstream(provider, {
    clock,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    secrets: { handle: ({ key }) => handle(`kc/${key}`, values.get(key) ?? '') },
    tokenFile: () => handle('no/file', ''),
    outbound: (options) => createOutbound({ ...options, clock, breaker: false, deadlineMs: 30_000 }),
  })
}

/** Logs in through a client, refreshes, shows the spent refresh token; gives what was not as it should be. */
export async function askLogin(keycloak: Keycloak, clientId: string): Promise<readonly string[]> {
  const upstream = open(keycloak, clientId)
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
    const next = await upstream.refresh(tokens, subject, performance.now() + 10_000)
    expect(next.claims['sub'] === subject, 'claims after a refresh')
    expect(next.tokens.refreshToken?.equals(tokens.refreshToken ?? '') === false, 'rotation')
    const spent = await upstream.refresh(tokens, subject, performance.now() + 10_000).catch((error: unknown) => error)
    expect(spent instanceof Failure && spent.code === 'no_session', 'a spent refresh token')
  } finally {
    await upstream.close()
  }
  return wrong
}
