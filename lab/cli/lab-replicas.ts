import { randomBytes } from 'node:crypto'
import { access, constants, mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { Secret } from '../../src/core/index.ts'

/** The Redis that replicas of the lab share. */
export interface SharedRedis {
  readonly masterName: string
  /** `host:port` */
  readonly sentinelAddress: string
  readonly username: string
  readonly password: Secret
}

/** Either of them is Sentinel too. */
const SERVERS = ['redis-server', 'valkey-server']
const USUAL_FOLDERS = ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin']

/** The message when replicas are requested and no Redis is installed. */
export const REDIS_MISSING =
  'replicas share their state in Redis, and redis-server is not on the PATH. Install Redis with Sentinel: on Debian and\nUbuntu `apt-get install redis-server redis-sentinel`, with Homebrew `brew install redis`; or run the lab without --replicas.'

/** The path of `redis-server` (or `valkey-server`) in `searchPath` (a `PATH`); undefined when there is none. */
export async function findRedisServer(searchPath: string | undefined): Promise<string | undefined> {
  const folders = searchPath?.split(path.delimiter) ?? USUAL_FOLDERS
  for (const file of SERVERS.flatMap((name) => folders.map((folder) => path.join(folder, name)))) {
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return file
  }
  return undefined
}

/**
 * Puts into a copy of config/lab what replicas need in common, beside what they have in common already: one store for logins,
 * connected accounts and fetched credentials, and the keys of its values and of MCP sessions.
 */
export async function shareState(directory: string, redis: SharedRedis): Promise<void> {
  const secret = async (key: string, value: string): Promise<{ name: string; key: string }> => {
    const name = 'lab-replicas'
    await mkdir(path.join(directory, 'secrets', name), { recursive: true })
    await writeFile(path.join(directory, 'secrets', name, key), value, { mode: 0o600 })
    return { name, key }
  }
  const storage = {
    type: 'kvstore',
    kvstore: {
      aclUserConfig: {
        usernameSecretRef: await secret('redis-username', redis.username),
        passwordSecretRef: await secret('redis-password', redis.password.reveal()),
      },
      sentinelConfig: { masterName: redis.masterName, sentinelAddrs: [redis.sentinelAddress] },
    },
  }
  const sealing = await secret('cache-key', randomBytes(32).toString('base64url'))
  const session = await secret('session-key', randomBytes(32).toString('base64url'))
  await edit(path.join(directory, 'proxy.yaml'), [
    [['spec', 'cache'], { storage, keySecretRefs: [sealing] }],
    [['spec', 'sessionKeySecretRef'], session],
    [['spec', 'connections', 'storage'], storage],
    [['spec', 'connections', 'keySecretRefs'], [await secret('connection-key', randomBytes(32).toString('base64url'))]],
  ])
  await edit(path.join(directory, 'upstream.yaml'), [[['spec', 'embeddedAuthServer', 'storage'], storage]])
}

/** Sets values in the first document of a file; its comments and the other documents stay. */
async function edit(file: string, values: readonly (readonly [readonly string[], object])[]): Promise<void> {
  const documents = parseAllDocuments(await readFile(file, 'utf8'))
  for (const [at, value] of values) documents[0]?.setIn(at, value)
  await writeFile(file, documents.map((document) => document.toString()).join('---\n'))
}
