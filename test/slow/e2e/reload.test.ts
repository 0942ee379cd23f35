import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { type LabBackend, startLabBackend } from '../../../lab/index.ts'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { authConfig, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'

const [OLD, NEW] = ['the-old-value', 'the-new-value']
let backend: LabBackend
let proxy: RunningTestProxy

const files = (name: string) => ({
  'auth.json': authConfig(name, {
    type: 'headerInjection',
    headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
  }),
  'proxy.json': proxyConfig({
    auth: { mode: 'anonymous' },
    routes: ['old', 'new'].map((mount) => ({
      name: `${mount}-${name}`,
      path: `/${mount}`,
      target: `${backend.url}/${mount}/mcp`,
      externalAuthConfigRef: { name },
    })),
  }),
})

beforeAll(async () => {
  backend = await startLabBackend({
    port: 0,
    mounts: {
      '/old': { kind: 'header', name: 'X-Api-Key', value: new Secret(OLD) },
      '/new': { kind: 'header', name: 'X-Api-Key', value: new Secret(NEW) },
    },
    clock: { now: () => Date.now() },
  })
})
afterAll(() => backend.close())

/** Writes a secret as the kubelet does: `key` → `..data/key`, and `..data` → a directory with a time in its name. */
async function mount(directory: string, value: string, stamp: string): Promise<void> {
  const secret = path.join(directory, 'secrets/api')
  await mkdir(path.join(secret, `..${stamp}`), { recursive: true })
  await writeFile(path.join(secret, `..${stamp}`, 'key'), value)
  await symlink(`..${stamp}`, path.join(secret, `..data_${stamp}`))
  await rename(path.join(secret, `..data_${stamp}`), path.join(secret, '..data'))
  await symlink('..data/key', path.join(secret, 'key')).catch(() => undefined)
}

describe('a running proxy', () => {
  it('answers every request while the configuration is replaced again and again', async () => {
    proxy = await run({ ...files('a'), 'secrets/api/key': OLD })
    const statuses: number[] = []
    const done = new AbortController()
    const load = Array.from({ length: 8 }, async () => {
      while (!done.signal.aborted) {
        const response = await post(`${proxy.url}/old`, INITIALIZE)
        await response.text()
        statuses.push(response.status)
      }
    })
    for (let round = 0; round < 10; round++) {
      const name = `round-${round}`
      // Half of a change is broken for a moment: the route refers to a config that is not there yet.
      await proxy.write('proxy.json', files(name)['proxy.json'])
      await proxy.write('auth.json', files(name)['auth.json'])
      expect(await proxy.reload()).toEqual({ ok: true })
    }
    done.abort()
    await Promise.all(load)
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(statuses.length).toBeGreaterThan(50)
    await proxy.close()
  })

  it('takes up a secret that is mounted late and one that is swapped, without a restart', async () => {
    proxy = await run(files('a'))
    const status = async (route: string): Promise<number> => (await post(`${proxy.url}/${route}`, INITIALIZE)).status
    const missing = await post(`${proxy.url}/old`, INITIALIZE)
    expect(missing.status).toBe(500)
    expect(await missing.json()).toMatchObject({ error: { data: { reason: 'secret_unavailable' } } })
    expect((await fetch(`${proxy.adminUrl}/readiness`)).status).toBe(503)
    await mount(proxy.directory, OLD, '2026_11_21_a')
    await vi.waitFor(async () => expect(await status('old')).toBe(200), 10_000)
    expect((await fetch(`${proxy.adminUrl}/readiness`)).status).toBe(200)
    // The backend's own word: a 403 passes.
    expect(await status('new')).toBe(403)
    await mount(proxy.directory, NEW, '2026_11_21_b')
    await vi.waitFor(async () => expect(await status('new')).toBe(200), 10_000)
    expect(await status('old')).toBe(403)
    await proxy.close()
  })

  it('goes on with what it has while a secret that its routes would change to is not there', async () => {
    proxy = await run({ ...files('a'), 'secrets/api/key': OLD })
    const statusOf = async (route: string): Promise<number> => (await post(`${proxy.url}/${route}`, INITIALIZE)).status
    const next = authConfig('a', {
      type: 'headerInjection',
      headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'next', key: 'key' } },
    })
    await proxy.write('auth.json', next)
    const refused = await proxy.reload()
    expect(refused.ok).toBe(false)
    expect(JSON.stringify(refused)).toMatch(/the secret next\/key does not exist, expected [^;"]*\/next\/key \(routes/)
    expect([await statusOf('old'), await statusOf('new')]).toEqual([200, 403])
    await proxy.write('secrets/next/key', NEW)
    // Without an event: the poll finds it.
    await vi.waitFor(async () => expect([await statusOf('old'), await statusOf('new')]).toEqual([403, 200]), 10_000)
    await proxy.close()
  }, 20_000)

  it('goes over to a secret that is probably wrong: it can be used as it is', async () => {
    proxy = await run({
      ...files('a'),
      'secrets/api/key': OLD,
      'secrets/odd/secret': 'a client secret, then a blank line\n\n',
    })
    const clientSecretRef = { name: 'odd', key: 'secret' }
    const clientCredentials = { tokenUrl: 'http://127.0.0.1:9/token', clientId: 'proxy', clientSecretRef }
    await proxy.write('auth.json', authConfig('a', { type: 'clientCredentials', clientCredentials }))
    expect(await proxy.reload()).toEqual({ ok: true })
    await proxy.close()
  })

  it('takes a new route whose secret is not there yet, beside those that have theirs', async () => {
    proxy = await run({ ...files('a'), 'secrets/api/key': OLD })
    const more = {
      name: 'more',
      path: '/more',
      target: `${backend.url}/old/mcp`,
      externalAuthConfigRef: { name: 'more' },
    }
    await proxy.write(
      'more.json',
      authConfig('more', {
        type: 'headerInjection',
        headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'later', key: 'key' } },
      }),
    )
    const config = JSON.parse(files('a')['proxy.json']) as { spec: { routes: object[] } }
    config.spec.routes.push(more)
    await proxy.write('proxy.json', JSON.stringify(config))
    expect(await proxy.reload()).toEqual({ ok: true })
    expect((await post(`${proxy.url}/more`, INITIALIZE)).status).toBe(500)
    expect((await post(`${proxy.url}/old`, INITIALIZE)).status).toBe(200)
    await proxy.close()
  })
})
