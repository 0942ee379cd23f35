import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { RedisConfig, StoreTls } from '../../../src/storage/index.ts'
import { createTestSecrets } from '../ports.ts'
import { TLS } from '../tls.ts'
import { APPLICATION_RULES } from './acl.ts'
import { startRedis, type RedisProcess, type RedisProcessOptions } from './server.ts'

export interface DeploymentOptions {
  /** Default 0. */
  readonly replicas?: number
  /** Default 1; the quorum is more than half. */
  readonly sentinels?: number
  /** Own certificates, signed by different authorities, for Redis and for the sentinels. */
  readonly tls?: boolean
  /** Lines for every Redis. */
  readonly config?: readonly string[]
  /** ACL of the product's user; default: as documented. */
  readonly rules?: string
}

/** Redis as an operator sets it up for the product: users, replicas, sentinels. */
export interface Deployment {
  /** In the order in which they were started: the first was the master then. */
  readonly nodes: readonly RedisProcess[]
  readonly sentinels: readonly RedisProcess[]
  /** Configuration of the product. */
  config(overrides?: Partial<RedisConfig>): RedisConfig
  close(): Promise<void>
}

export const APPLICATION = { username: 'extauth', password: 'password-of-extauth' }
export const OPERATOR = { username: 'operator', password: 'password-of-operator' }

/** Starts it; sentinels call a silent master down after 1 s. */
export async function startDeployment(options: DeploymentOptions = {}): Promise<Deployment> {
  const directory = await mkdtemp(path.join(tmpdir(), 'extauth-redis-tls-'))
  const certificates = async (name: 'server' | 'otherServer') => {
    const files = { cert: path.join(directory, `${name}.pem`), key: path.join(directory, `${name}.key`) }
    const ca = path.join(directory, 'ca.pem')
    await writeFile(files.cert, TLS[name].cert)
    await writeFile(files.key, TLS[name].key)
    await writeFile(ca, Buffer.concat([TLS.ca, TLS.otherCa]))
    return { ...files, ca }
  }
  const tlsOf = async (name: 'server' | 'otherServer'): Promise<Pick<RedisProcessOptions, 'tls'>> =>
    options.tls === true ? { tls: await certificates(name) } : {}

  const users = [
    'user default off',
    `user ${OPERATOR.username} on >${OPERATOR.password} ~* &* +@all`,
    `user ${APPLICATION.username} on >${APPLICATION.password} resetchannels ${options.rules ?? APPLICATION_RULES}`,
    `masteruser ${OPERATOR.username}`,
    `masterauth ${OPERATOR.password}`,
    ...(options.config ?? []),
  ]
  const nodes: RedisProcess[] = []
  for (let index = 0; index <= (options.replicas ?? 0); index += 1) {
    const [master] = nodes
    const follow = master === undefined ? [] : [`replicaof 127.0.0.1 ${master.port}`]
    nodes.push(
      await startRedis({ config: [...users, ...follow, 'repl-diskless-sync-delay 0'], ...(await tlsOf('server')) }),
    )
  }
  const count = options.sentinels ?? 1
  const sentinels: RedisProcess[] = []
  for (let index = 0; index < count; index += 1) {
    const config = [
      `sentinel monitor mymaster 127.0.0.1 ${nodes[0]?.port} ${Math.floor(count / 2) + 1}`,
      'sentinel down-after-milliseconds mymaster 1000',
      'sentinel failover-timeout mymaster 5000',
      `sentinel auth-user mymaster ${OPERATOR.username}`,
      `sentinel auth-pass mymaster ${OPERATOR.password}`,
    ]
    sentinels.push(await startRedis({ isSentinel: true, config, ...(await tlsOf('otherServer')) }))
  }

  const secrets = createTestSecrets({
    'redis/username': APPLICATION.username,
    'redis/password': APPLICATION.password,
    'redis/ca': TLS.ca.toString(),
    'sentinel/ca': TLS.otherCa.toString(),
  })
  const tls = (label: string): StoreTls | undefined =>
    options.tls === true ? { ca: secrets.get(label), insecureSkipVerify: false } : undefined

  return {
    nodes,
    sentinels,
    config: (overrides) => ({
      username: secrets.get('redis/username'),
      password: secrets.get('redis/password'),
      masterName: 'mymaster',
      db: 0,
      sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
      tls: tls('redis/ca'),
      sentinelTls: tls('sentinel/ca'),
      dialTimeoutMs: 5_000,
      readTimeoutMs: 3_000,
      writeTimeoutMs: 3_000,
      waitReplicas: 0,
      ...overrides,
    }),
    async close() {
      for (const process of [...sentinels, ...nodes]) await process.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
