import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type LabIdentityProvider, startLabIdentityProvider } from '../../../lab/index.ts'
import { runRegistryServer, type RunningRegistry } from '../../../src/compose/registry/run-registry.ts'
import { entry, get, idsOf, recordingLog, SERVERS } from '../../support/registry/setup.ts'

let directory: string
let registry: RunningRegistry | undefined
let identity: LabIdentityProvider | undefined
const log = recordingLog()

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'registry-reload-'))
  log.lines.length = 0
})
afterEach(async () => {
  await registry?.close()
  await identity?.close()
  registry = identity = undefined
  rmSync(directory, { recursive: true })
})

const write = (name: string, text: string): void => {
  writeFileSync(path.join(directory, `${name}.tmp`), text)
  renameSync(path.join(directory, `${name}.tmp`), path.join(directory, name))
}
const data = (name: string, ...ids: string[]): void => write(name, JSON.stringify(ids.map((id) => entry(id, '1'))))
const ANONYMOUS = 'auth: {mode: anonymous}'
const configure = (registries: Record<string, string>, auth = ANONYMOUS): void => {
  const lines = Object.entries(registries).map(([name, file]) => `  - {name: ${name}, source: {file: ./${file}}}`)
  write('registry.yaml', `${auth}\nregistries:\n${lines.join('\n')}\n`)
}
const start = async (): Promise<RunningRegistry> => {
  const options = { address: '127.0.0.1:0', internalAddress: '127.0.0.1:0', env: {}, drainGraceMs: 0, log }
  registry = await runRegistryServer({ ...options, configPath: path.join(directory, 'registry.yaml') })
  return registry
}
const list = (running: RunningRegistry, name = 'default') => get(running, SERVERS.replace('default', name))
const said = (text: string) => log.lines.filter((line) => line.includes(text)).length

describe('a changed registry file', () => {
  it('takes effect without a restart: registries are added, changed and removed', async () => {
    data('one.json', 'a/one')
    data('two.json', 'a/two')
    configure({ default: 'one.json', old: 'two.json' })
    const running = await start()
    expect((await list(running, 'old')).status).toBe(200)
    configure({ default: 'two.json', fresh: 'one.json' })
    await expect.poll(async () => idsOf(await list(running)), { timeout: 10_000 }).toEqual(['a/two 1'])
    expect(idsOf(await list(running, 'fresh'))).toEqual(['a/one 1'])
    expect((await list(running, 'old')).status).toBe(404)
    const readiness = await get({ url: running.internalUrl }, '/readiness')
    expect(readiness.json).toMatchObject({
      detail: { registries: { default: { entries: 1 }, fresh: { entries: 1 } } },
    })
    const { text } = await get({ url: running.internalUrl }, '/metrics')
    expect(text).toContain('extauth_registry_entries{registry="fresh"} 1')
    expect(text).not.toContain('registry="old"')
    // The data of a registry of the new file are still watched.
    data('two.json', 'a/two', 'b/two')
    await expect.poll(async () => idsOf(await list(running)), { timeout: 10_000 }).toHaveLength(2)
  })

  it('updates the accepted callers and the discovery document', async () => {
    data('one.json', 'a/one')
    configure({ default: 'one.json' })
    const running = await start()
    identity = await startLabIdentityProvider({ port: 0, clients: [], clock: { now: () => Date.now() } })
    configure(
      { default: 'one.json' },
      `auth: {mode: oauth, oauth: {resourceUrl: 'http://localhost/r', providers: [{name: lab, issuerUrl: '${identity.url}', audience: r}]}}`,
    )
    await running.reload()
    const refused = await list(running)
    expect(refused.status).toBe(401)
    const token = await identity.mint({ sub: 'alice', aud: ['r'] })
    expect((await get(running, SERVERS, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200)
    const document = await get(running, '/.well-known/oauth-protected-resource/r')
    expect(document.json).toMatchObject({ resource: 'http://localhost/r', authorization_servers: [identity.url] })
    expect((await get(running, '/openapi.json')).text).toContain('securitySchemes')
    configure({ default: 'one.json' })
    await running.reload()
    expect((await list(running)).status).toBe(200)
  })

  it.each([
    ['is no YAML', 'auth: {', 'registry.yaml:1'],
    ['has an unknown field', `${ANONYMOUS}\nregistrys: []`, 'registrys'],
    [
      'names data that are not there',
      `${ANONYMOUS}\nregistries: [{name: default, source: {file: none.json}}]`,
      'missing',
    ],
  ])('that %s changes nothing, and the log says why', async (_, text, why) => {
    data('one.json', 'a/one')
    configure({ default: 'one.json' })
    const running = await start()
    write('registry.yaml', text)
    await expect.poll(() => said('the previous one stays active'), { timeout: 10_000 }).toBeGreaterThan(0)
    expect(log.lines.find((line) => line.includes('the previous one stays active'))).toContain(why)
    expect(idsOf(await list(running))).toEqual(['a/one 1'])
    // The active data are still watched.
    data('one.json', 'a/one', 'b/one')
    await expect.poll(async () => idsOf(await list(running)), { timeout: 10_000 }).toHaveLength(2)
  })

  it('leaves alone what it does not change', async () => {
    data('one.json', 'a/one')
    data('two.json', 'a/two')
    configure({ default: 'one.json' })
    const running = await start()
    configure({ default: 'one.json', more: 'two.json' })
    await running.reload()
    const loads = () =>
      log.lines.filter((line) => /registry data loaded.*"default"|"default".*registry data loaded/.test(line))
    // At the start and in the second part of each reload, which looks at everything; not because the file has changed. The
    // watch of the file may be reloading it as well.
    await expect.poll(() => loads().length - said('configuration reloaded')).toBeLessThanOrEqual(1)
    expect(idsOf(await list(running, 'more'))).toEqual(['a/two 1'])
  })
})
