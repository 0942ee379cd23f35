import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as secureRequest, type RequestOptions } from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Failure, Secret, type SecretHandle } from '../src/core/index.ts'
import { createOutbound } from '../src/net/index.ts'
import { upstreamProvider } from '../src/resources/upstream/upstream-provider.ts'
import { createUpstream, type Upstream, type UpstreamLeg } from '../src/upstreams/index.ts'

/** A Keycloak of this very run: one realm, one user, two clients that need PKCE, refresh tokens good for one use. */
export interface Keycloak {
  readonly issuer: string
  readonly caCert: Buffer
  close(): void
}

const VERSION = '26.4.2'
const DOWNLOAD_MS = 240_000
const START_MS = 420_000
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

const REALM = {
  realm: 'peer',
  enabled: true,
  revokeRefreshToken: true,
  refreshTokenMaxReuse: 0,
  clients: [
    client('us', { secret: SECRET, clientAuthenticatorType: 'client-secret' }),
    client('public', { publicClient: true }),
  ],
  users: [
    {
      username: 'alice',
      enabled: true,
      email: 'alice@example.com',
      emailVerified: true,
      firstName: 'Alice',
      lastName: 'Example',
      realmRoles: ['offline_access'],
      credentials: [{ type: 'password', value: 'alice' }],
    },
  ],
}

const MAVEN_PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1'

const works = (command: string, args: readonly string[], timeoutMs: number): boolean =>
  spawnSync(command, args, { stdio: 'ignore', timeout: timeoutMs }).status === 0

/** Why it can't be had here; undefined where it can: Java and Maven are here, and the registry has it. */
export function missingKeycloak(): string | undefined {
  for (const [command, word] of [
    ['java', '-version'],
    ['mvn', '--version'],
    ['unzip', '-v'],
  ] as const)
    if (!works(command, [word], 60_000)) return `there is no ${command}`
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-maven-'))
  try {
    // A few kilobytes: the description of what will be asked for.
    const artifact = `-Dartifact=org.keycloak:keycloak-parent:${VERSION}:pom`
    const isThere = works(
      'mvn',
      ['-q', '-B', `${MAVEN_PLUGIN}:copy`, artifact, `-DoutputDirectory=${directory}`],
      120_000,
    )
    return isThere ? undefined : 'the Maven registry does not answer'
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Keycloak's distribution, unpacked. Throws where Maven does not give it. */
function install(directory: string): string {
  const archive = `keycloak-quarkus-dist-${VERSION}.zip`
  const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`
  const steps: readonly (readonly [string, readonly string[]])[] = [
    ['mvn', ['-q', '-B', `${MAVEN_PLUGIN}:copy`, artifact, `-DoutputDirectory=${directory}`]],
    ['unzip', ['-q', path.join(directory, archive), '-d', directory]],
  ]
  for (const [command, args] of steps)
    if (!works(command, args, DOWNLOAD_MS)) throw new Error(`${command} ${args.slice(0, 4).join(' ')} did not work`)
  return path.join(directory, `keycloak-${VERSION}`)
}

/** Starts a Keycloak on TLS. Throws when it can't be installed or does not start. */
export async function startKeycloak(
  port: number,
  tls: { readonly ca: Buffer; readonly certFile: string; readonly keyFile: string },
): Promise<Keycloak> {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-keycloak-'))
  let child: ChildProcess | undefined
  const close = () => {
    // A group of its own: the script starts Java beside itself.
    if (child?.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    const home = install(directory)
    mkdirSync(path.join(home, 'data', 'import'), { recursive: true })
    writeFileSync(path.join(home, 'data', 'import', 'peer.json'), JSON.stringify(REALM))
    const url = `https://127.0.0.1:${port}`
    const options = [
      ['--import-realm', '--cache=local', '--http-enabled=false', '--http-host=127.0.0.1', `--https-port=${port}`],
      [`--https-certificate-file=${tls.certFile}`, `--https-certificate-key-file=${tls.keyFile}`, `--hostname=${url}`],
    ]
    const env = { ...process.env, JAVA_OPTS_APPEND: '-Xmx512m' }
    child = spawn(path.join(home, 'bin', 'kc.sh'), ['start-dev', ...options.flat()], {
      stdio: 'ignore',
      detached: true,
      env,
    })
    const issuer = `${url}/realms/peer`
    await untilReady(`${issuer}/.well-known/openid-configuration`, tls.ca)
    return { issuer, caCert: tls.ca, close }
  } catch (error) {
    close()
    throw error
  }
}

async function untilReady(url: string, ca: Buffer): Promise<void> {
  const endsAtMs = Date.now() + START_MS
  while (Date.now() < endsAtMs) {
    const status = await visit(url, { ca }).then(
      (page) => page.status,
      () => 0,
    )
    if (status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
  throw new Error('Keycloak does not start')
}

interface Page {
  readonly status: number
  readonly location: string | undefined
  readonly cookies: readonly string[]
  readonly body: string
}

function visit(url: string, options: RequestOptions, form?: string): Promise<Page> {
  return new Promise((resolve, reject) => {
    const request = secureRequest(url, { ...options, method: form === undefined ? 'GET' : 'POST' }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response
        const body = Buffer.concat(chunks).toString('utf8')
        resolve({ status, location: headers.location, cookies: headers['set-cookie'] ?? [], body })
      })
    })
    request.on('error', reject)
    request.end(form)
  })
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

function open({ issuer, caCert }: Keycloak, clientId: string): Upstream {
  const values = new Map([
    ['ca', caCert.toString()],
    ['secret', SECRET],
  ])
  const quiet = () => undefined
  const provider = upstreamProvider().parse({
    name: 'keycloak',
    type: 'oidc',
    caBundleRef: { name: 'kc', key: 'ca' },
    oidcConfig: {
      issuerUrl: issuer,
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
export async function askKeycloak(keycloak: Keycloak, clientId: string): Promise<readonly string[]> {
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
    const came = await logIn(await upstream.authorizationUrl(leg), keycloak.caCert)
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
