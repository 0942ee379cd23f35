import { rm } from 'node:fs/promises'
import type { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import { ConfigError, loadProxyConfig } from '../../../src/compose/index.ts'
import { readProxyConfig } from '../../../src/compose/proxy/read-config.ts'
import { authConfig, configFolder, proxyConfig } from '../../e2e/run.ts'

const folders: string[] = []
const started: Worker[] = []
const onWorker = (worker: Worker): number => started.push(worker)
process.on('worker', onWorker)
afterEach(async () => {
  started.length = 0
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })))
})

const secret = { name: 's', key: 'k' }
/** A folder whose routes refer to a config that is there, unless `missing` names another. */
async function folderOf(routes: number, missing = 'token'): Promise<string> {
  const route = (index: number) => ({
    name: `r-${index}`,
    path: `/r/${index}`,
    target: `https://backend-${index % 7}.example.com/mcp`,
    externalAuthConfigRef: { name: index === routes - 1 ? missing : 'token' },
  })
  const { directory, write } = await configFolder({
    'a.json': authConfig('token', { type: 'bearerToken', bearerToken: { tokenSecretRef: secret } }),
    'p.json': proxyConfig({
      auth: { mode: 'anonymous' },
      secretsDirectory: './secrets',
      routes: Array.from({ length: routes }, (_, index) => route(index)),
    }),
  })
  await write('secrets/s/k', 'a-token')
  folders.push(directory)
  return directory
}

describe('reading a configuration', () => {
  it('a small one is read at once, without a thread', async () => {
    const { routes } = await readProxyConfig({ configPaths: [await folderOf(3)] })
    expect(routes).toHaveLength(3)
    expect(started).toEqual([])
  })

  it('a large one is read by a thread, and is the same with its places', { timeout: 60_000 }, async () => {
    const sources = { configPaths: [await folderOf(1200)], listen: '127.0.0.1:1' }
    const [read, loaded] = [await readProxyConfig(sources), await loadProxyConfig(sources)]
    expect(started).toHaveLength(1)
    expect(read).toEqual(loaded)
    expect(read.routes).toHaveLength(1200)
    const part = { route: 'r-1199' }
    expect(read.places.problem(part, 'm')).toEqual(loaded.places.problem(part, 'm'))
    expect(read.places.problem(part, 'm', 's/k')).toEqual(loaded.places.problem(part, 'm', 's/k'))
    expect(read.places.names('listen')).toBe(false)
  })

  it('what is wrong with a large one is told as with a small one', { timeout: 60_000 }, async () => {
    const sources = { configPaths: [await folderOf(1200, 'none')] }
    const refused = await readProxyConfig(sources).catch((error: unknown) => error)
    const expected = await loadProxyConfig(sources).catch((error: unknown) => error)
    expect(started).toHaveLength(1)
    expect(refused).toBeInstanceOf(ConfigError)
    expect(refused).toEqual(expected)
    expect((refused as ConfigError).lines.join()).toContain('there is no MCPExternalAuthConfig "none"')
  })
})
