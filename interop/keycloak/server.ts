import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../../lab/free-port.ts'
import { fromMaven } from '../maven.ts'
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
/** Features that are off by default. */
const FEATURES = 'jwt-authorization-grant,identity-assertion-jwt,client-auth-federated,spiffe'
const UNPACK_MS = 240_000
/** It rebuilds itself at its first start, which takes minutes on a busy machine. */
const START_MS = 600_000

const ARCHIVE = `keycloak-quarkus-dist-${VERSION}.zip`
const distribution = fromMaven({
  goal: 'copy',
  options: [`-Dartifact=org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`],
  checksums: new Map([[ARCHIVE, '30ef87fb7101c43d29688d1ae80c0588ff4a151b3330e9f664bf9692d398658a']]),
})

const works = (command: string, args: readonly string[], timeoutMs: number): boolean =>
  spawnSync(command, args, { stdio: 'ignore', timeout: timeoutMs }).status === 0

/** Why it can't be had here; undefined where it can: Java, Maven, unzip and openssl are here, and it is or can be downloaded. */
export function missingKeycloak(): string | undefined {
  for (const [command, word] of [
    ['unzip', '-v'],
    ['openssl', 'version'],
  ] as const)
    if (!works(command, [word], 60_000)) return `there is no ${command}; in Debian: ${command}`
  return distribution.missing()
}

/** Keycloak's distribution, unpacked. Throws where Maven does not give it. */
function install(directory: string): string {
  const args = ['-q', path.join(distribution.folder(), ARCHIVE), '-d', directory]
  if (!works('unzip', args, UNPACK_MS)) throw new Error(`unzip of ${ARCHIVE} did not work`)
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
      // In this mode it listens without TLS too, whatever the configuration.
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
