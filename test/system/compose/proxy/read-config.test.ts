import { rm } from 'node:fs/promises'
import type { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import { ConfigError, loadProxyConfig } from '../../../../src/compose/index.ts'
import { readProxyConfig, runProxy } from '../../../../src/compose/proxy/index.ts'
import { recordLog } from '../../../support/e2e/lab.ts'
import { authConfig, configFolder, freePort, proxyConfig } from '../../../support/e2e/run.ts'

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
    target: `http://127.0.0.1:${1 + (index % 7)}/mcp`,
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

describe('starting with a large configuration', () => {
  it('no request hears that there is no such route', { timeout: 180_000 }, async () => {
    const listen = `127.0.0.1:${await freePort()}`
    const configPaths = [await folderOf(700)]
    const starting = runProxy({ configPaths, listen, admin: '127.0.0.1:0', env: {}, log: recordLog(), drainGraceMs: 0 })
    const answers: number[] = []
    const ask = () => fetch(`http://${listen}/r/1`, { method: 'OPTIONS' }).then(({ status }) => status)
    const up = new AbortController()
    const asking = (async () => {
      while (!up.signal.aborted) answers.push(await ask().catch(() => 0))
    })()
    const proxy = await starting
    up.abort()
    await asking
    await proxy.close()
    expect(answers).not.toContain(404)
  })
})

describe('reading a configuration', () => {
  it('a small one is read at once, without a thread', async () => {
    const { routes } = await readProxyConfig({ configPaths: [await folderOf(3)] })
    expect(routes).toHaveLength(3)
    expect(started).toEqual([])
  })

  it('a large one is read by a thread, and is the same with its places', { timeout: 180_000 }, async () => {
    const sources = { configPaths: [await folderOf(700)], listen: '127.0.0.1:1' }
    const [read, loaded] = [await readProxyConfig(sources), await loadProxyConfig(sources)]
    expect(started).toHaveLength(1)
    expect(read).toEqual(loaded)
    expect(read.routes).toHaveLength(700)
    const part = { route: 'r-699' }
    expect(read.places.problem(part, 'm')).toEqual(loaded.places.problem(part, 'm'))
    expect(read.places.problem(part, 'm', 's/k')).toEqual(loaded.places.problem(part, 'm', 's/k'))
    expect(read.places.names('listen')).toBe(false)
  })

  it('problems of a large one are reported like those of a small one', { timeout: 180_000 }, async () => {
    const sources = { configPaths: [await folderOf(700, 'none')] }
    const refused = await readProxyConfig(sources).catch((error: unknown) => error)
    const expected = await loadProxyConfig(sources).catch((error: unknown) => error)
    expect(started).toHaveLength(1)
    expect(refused).toBeInstanceOf(ConfigError)
    expect(refused).toEqual(expected)
    expect((refused as ConfigError).lines.join()).toContain('there is no MCPExternalAuthConfig "none"')
  })
})
