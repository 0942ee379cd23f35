import path from 'node:path'
import { startLabBackend, type LabBackend } from '../../../../lab/index.ts'
import { generateKeyPairSync } from 'node:crypto'
import { type LoginRig, LIMITS, upstreamOf } from '../../authserver/rig.ts'
import { startIdp } from '../../upstreams/idp.ts'
import { APPLICATION, type Deployment } from '../../redis/deployment.ts'
import type { Sockets } from '../../sockets.ts'
import { TLS } from '../../tls.ts'
import { extauth, type Running } from '../process.ts'
import { authConfig, configFolder, freePort, proxyConfig } from '../run.ts'

/** A replica in a process of its own. */
export interface Replica {
  readonly url: string
  readonly adminUrl: string
  readonly running: Running
  /** Ends it like `kill -9`. */
  kill(): Promise<void>
}

/** Replicas of one proxy, whose authorization server keeps its state in Redis. */
export interface LoginFleet extends LoginRig {
  readonly backend: LabBackend
  readonly replicas: readonly Replica[]
  /** Writes a file of the configuration, which all of them read. */
  write(name: string, text: string | Buffer): Promise<void>
  readonly spec: Readonly<Record<string, unknown>>
}

export interface LoginFleetOptions {
  readonly size: number
  /** Put over the spec of the authorization server. */
  readonly spec?: Readonly<Record<string, unknown>>
  /** Put over the storage. */
  readonly kvstore?: Readonly<Record<string, unknown>>
  readonly proxy?: Readonly<Record<string, unknown>>
  readonly files?: Readonly<Record<string, string | Buffer>>
  /** Put over the listener's settings. */
  readonly listen?: Readonly<Record<string, unknown>>
}

export const HMAC_FILE = 'secrets/as/hmac'

/** A key as `signingKeySecretRefs` has it. */
export const newSigningKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** Tokens of the identity provider are valid now, not at the time of the other tests. */
export const claimsOfNow = (): Record<string, number> => {
  const now = Math.floor(Date.now() / 1000)
  return { iat: now, exp: now + 3_600 }
}

/** Starts the replicas: real processes with one folder of files; the first has the address of the issuer. */
export async function openLoginFleet(
  sockets: Sockets,
  deployment: Pick<Deployment, 'sentinels'>,
  options: LoginFleetOptions,
): Promise<LoginFleet> {
  const idp = await startIdp(sockets)
  idp.claims = claimsOfNow()
  const backend = sockets.closing(
    await startLabBackend({ port: 0, clock: Date, mounts: { '/open': { kind: 'none' } } }),
  )
  const issuer = `http://127.0.0.1:${await freePort()}`
  const kvstore = {
    aclUserConfig: {
      usernameSecretRef: { name: 'redis', key: 'username' },
      passwordSecretRef: { name: 'redis', key: 'password' },
    },
    sentinelConfig: {
      masterName: 'mymaster',
      sentinelAddrs: deployment.sentinels.map(({ port }) => `127.0.0.1:${port}`),
    },
    ...options.kvstore,
  }
  const spec = {
    issuer,
    upstreamProviders: [upstreamOf(idp)],
    hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
    signingKeySecretRefs: [{ name: 'as', key: 'signing' }],
    storage: { type: 'kvstore', kvstore },
    limits: LIMITS,
    ...options.spec,
  }
  const resource = `${issuer}/mcp`
  const route = {
    name: 'mcp',
    path: '/mcp',
    target: `${backend.url}/open`,
    externalAuthConfigRef: { name: 'inject' },
    resourceUrl: resource,
  }
  const folder = await configFolder({
    'secrets/idp/secret': 'of us',
    'secrets/idp/ca': TLS.ca.toString(),
    [HMAC_FILE]: Buffer.alloc(32, 0xa5),
    'secrets/as/signing': newSigningKey(),
    'secrets/redis/username': APPLICATION.username,
    'secrets/redis/password': APPLICATION.password,
    'as.json': authConfig('as', { type: 'embeddedAuthServer', embeddedAuthServer: spec }),
    'inject.json': authConfig('inject', { type: 'upstreamInject', upstreamInject: { providerName: 'corp' } }),
    'proxy.json': proxyConfig({
      secretsDirectory: './secrets',
      authServerRef: { kind: 'MCPExternalAuthConfig', name: 'as' },
      routes: [route],
      ...(options.listen === undefined ? {} : { listen: options.listen }),
      ...options.proxy,
    }),
    ...options.files,
  })
  sockets.closing({ close: folder.remove })

  const start = async (listen: string): Promise<Replica> => {
    const running = extauth(['proxy', '--config', folder.directory, '--listen', listen, '--admin', '127.0.0.1:0'])
    const kill = async (): Promise<void> => {
      running.process.kill('SIGKILL')
      await running.ended
    }
    sockets.closing({ close: kill })
    const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
    return { url, adminUrl: admin, running, kill }
  }
  const replicas = await Promise.all(
    Array.from({ length: options.size }, (_, index) =>
      start(index === 0 ? issuer.replace('http://', '') : '127.0.0.1:0'),
    ),
  )
  return {
    issuer,
    idp,
    clock: Date,
    resources: [{ url: resource }],
    server: { addresses: { authorizeUrl: `${issuer}/oauth/authorize` } },
    backend,
    replicas,
    spec,
    write: (name, text) => folder.write(path.join(name), text),
  }
}
