import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../../lab/free-port.ts'
import type { Authority } from './certificates.ts'
import { visit } from './visit.ts'

/** A Keycloak of this very run, on TLS, that asks clients for certificates of the same authority. */
export interface Keycloak {
  readonly url: string
  /** The realm of the logins, and the one of docs/keycloak.md. */
  readonly realms: Readonly<Record<'peer' | 'company', string>>
  readonly authority: Authority
  close(): void
}

/** The newest whose distribution is in Maven's registry; 26.8 has none there. */
export const VERSION = '26.7.5'
/** What of it is not switched on by itself. */
const FEATURES = 'jwt-authorization-grant,identity-assertion-jwt,client-auth-federated,spiffe'
const DOWNLOAD_MS = 240_000
/** It makes itself anew at its first start, which takes minutes on a busy machine. */
const START_MS = 600_000

const MAVEN_PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1'

const works = (command: string, args: readonly string[], timeoutMs: number): boolean =>
  spawnSync(command, args, { stdio: 'ignore', timeout: timeoutMs }).status === 0

/** Why it can't be had here; undefined where it can: Java, Maven and openssl are here, and the registry has it. */
export function missingKeycloak(): string | undefined {
  for (const [command, word] of [
    ['java', '-version'],
    ['mvn', '--version'],
    ['unzip', '-v'],
    ['openssl', 'version'],
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

/** Starts a Keycloak with these realms. Throws when it can't be installed or does not start. */
export async function startKeycloak(
  authority: Authority,
  realms: Readonly<Record<'peer' | 'company', object>>,
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
    const port = await freePort()
    const url = `https://127.0.0.1:${port}`
    mkdirSync(path.join(home, 'data', 'import'), { recursive: true })
    for (const [realm, what] of Object.entries(realms))
      writeFileSync(path.join(home, 'data', 'import', `${realm}.json`), JSON.stringify({ ...what, realm }))
    const server = authority.issue('server', { subject: '/CN=server', names: 'DNS:localhost,IP:127.0.0.1' })
    const options = [
      ['--import-realm', '--cache=local', '--http-enabled=false', '--http-host=127.0.0.1', `--https-port=${port}`],
      [`--https-certificate-file=${server.certificate}`, `--https-certificate-key-file=${server.key}`],
      ['--https-client-auth=request', `--truststore-paths=${authority.certificate}`, `--hostname=${url}`],
      // In this mode it listens without TLS too, whatever it is told.
      [`--http-port=${await freePort()}`, `--features=${FEATURES}`],
    ]
    const env = { ...process.env, JAVA_OPTS_APPEND: '-Xmx512m' }
    child = spawn(path.join(home, 'bin', 'kc.sh'), ['start-dev', ...options.flat()], {
      stdio: 'ignore',
      detached: true,
      env,
    })
    const issuers = { peer: `${url}/realms/peer`, company: `${url}/realms/company` }
    await untilReady(`${issuers.company}/.well-known/openid-configuration`, authority.pem)
    return { url, realms: issuers, authority, close }
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
