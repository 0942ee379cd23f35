import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, type Stats } from 'node:fs'
import path from 'node:path'
import { LockTimeout, withLock, writePrivateFile } from '../files/index.ts'
import { STDIN } from '../load/index.ts'
import { STORE_FILE } from '../storage/index.ts'
import { ConfigError } from './config-error.ts'
import type { Io } from './io.ts'
import type { ProxySources } from './load-config.ts'
import { stateDirectory } from './state-directory.ts'

/** Reference of the key that seals the connections. */
const KEY = { name: 'seal', key: 'key' }
/** Time for a process that is stopping to release its state. */
const LOCK_MS = 3_000

/**
 * The sources of `extauth proxy --target URL --connect`: a remote MCP server whose account the local user connects
 * (connections.md §1). Creates the directory of its connections, and the key that seals them. Throws `ConfigError` for
 * a key that other users can read, and while another process uses the directory.
 */
export async function connectSources(target: string, env: Io['env']): Promise<ProxySources> {
  // Without the query, which may be confidential.
  const { origin, pathname, href } = new URL(target)
  const digest = createHash('sha256').update(href).digest('hex').slice(0, 16)
  const directory = path.join(stateDirectory(env), 'connections', digest)
  try {
    await withLock(directory, STORE_FILE, LOCK_MS, () => prepareKey(directory))
  } catch (error) {
    if (error instanceof ConfigError) throw error
    if (error instanceof LockTimeout)
      throw new ConfigError([`${directory}: another process serves ${origin}${pathname}. Use that one, or stop it.`])
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    throw new ConfigError([`${directory}: can not be used (${code}), expected a directory that you can write`])
  }
  return { configPaths: [STDIN], stdin: documents(target, directory), secretsDirectory: directory, target }
}

async function prepareKey(directory: string): Promise<void> {
  const file = path.join(directory, KEY.name, KEY.key)
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined) return writePrivateFile(file, `${randomBytes(32).toString('base64url')}\n`)
  const problem = keyProblem(found, directory)
  if (problem !== undefined) throw new ConfigError([`${file}: ${problem}`])
}

function keyProblem(found: Stats, directory: string): string | undefined {
  const { mode, uid } = found
  if (!found.isFile()) return 'not a regular file, expected the key that seals the connections'
  // Windows has neither modes nor user ids.
  if (process.getuid === undefined) return undefined
  if (uid !== process.getuid()) return `belongs to the user ${uid}, expected to be your own`
  if ((mode & 0o077) === 0) return undefined
  const octal = (mode & 0o777).toString(8)
  return `other users can read it (mode ${octal}), expected mode 600. Run chmod 600 on it; if others may have read it, delete ${directory} and connect again`
}

/** The provider has the name of the host, as people see it. */
function documents(target: string, directory: string): string {
  const provider = new URL(target).hostname
    .slice(0, 63)
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  const apiVersion = 'extauth.dev/v1alpha1'
  const proxy = {
    apiVersion,
    kind: 'ProxyConfig',
    metadata: { name: 'connect' },
    spec: {
      auth: { mode: 'anonymous' },
      connections: {
        singleUser: true,
        storage: { type: 'file', file: { directory } },
        keySecretRefs: [KEY],
        providers: [{ name: provider, type: 'mcp', mcp: {}, allowPrivateIP: true }],
      },
    },
  }
  const auth = {
    apiVersion,
    kind: 'MCPExternalAuthConfig',
    metadata: { name: 'connect' },
    spec: { type: 'bearerToken', bearerToken: { connectionName: provider } },
  }
  return [proxy, auth].map((document) => JSON.stringify(document)).join('\n---\n')
}
