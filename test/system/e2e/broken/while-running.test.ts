import { createServer } from 'node:http'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { runRegistryServer } from '../../../../src/compose/registry/run-registry.ts'
import { runProxy } from '../../../../src/compose/proxy/process.ts'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import { recordLog } from '../../../support/e2e/lab.ts'
import { authConfig, configFolder, proxyConfig, run } from '../../../support/e2e/run.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const OPEN = authConfig('open', { type: 'unauthenticated' })

describe('files that break while they are used', () => {
  it('authorities of a backend: the old ones go on serving, and a reload is refused until they are mended', async () => {
    const target = await sockets.https(TLS.server, (_request, response) => response.end('fine'))
    const route = {
      name: 'r',
      path: '/',
      target,
      externalAuthConfigRef: { name: 'open' },
      targetTls: { caCertPath: 'ca.pem' },
    }
    const proxy = await run({
      'auth.json': OPEN,
      'ca.pem': TLS.ca.toString(),
      'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes: [route] }),
    })
    sockets.closing(proxy)
    const status = async (): Promise<number> =>
      (await fetch(`${proxy.url}/`, { headers: { connection: 'close' } })).status
    expect(await status()).toBe(200)
    await proxy.write('ca.pem', 'not a certificate')
    expect([await status(), await status()]).toEqual([200, 200])
    expect(await proxy.reload()).toEqual({
      ok: false,
      problems: [
        expect.stringMatching(/proxy\.json:1:\d+ .*targetTls\.caCertPath .*it holds no certificate.* \(route "r"\)$/),
      ],
    })
    expect(
      proxy.log.lines.some((line) => line.includes('the previous one stays active') && line.includes('ca.pem')),
    ).toBe(true)
    expect(await status()).toBe(200)
    // Another authority is taken up: this one does not know the backend.
    await proxy.write('ca.pem', TLS.otherCa.toString())
    expect(await proxy.reload()).toEqual({ ok: true })
    expect(await status()).toBe(502)
  })

  it('CA certificates without a file name are reported without calling them a secret', async () => {
    const cluster = {
      jwksUrl: 'https://127.0.0.1:1/jwks',
      issuer: 'https://kubernetes.default.svc',
    }
    const manifest = {
      apiVersion: 'extauth.dev/v1alpha1',
      kind: 'MCPRemoteProxy',
      metadata: { name: 'm' },
      spec: {
        remoteUrl: 'https://127.0.0.1:1',
        externalAuthConfigRef: { name: 'open' },
        oidcConfig: { type: 'kubernetes', kubernetes: cluster },
      },
    }
    const proxy = await run({ 'auth.json': OPEN, 'manifest.json': JSON.stringify(manifest) })
    sockets.closing(proxy)
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: cluster.issuer, sub: 'a', aud: 'toolhive', exp: Math.floor(Date.now() / 1000) + 600 }
    const token = `${part({ alg: 'RS256', kid: 'k' })}.${part(claims)}.c2ln`
    const response = await fetch(proxy.url, { headers: { authorization: `Bearer ${token}` } })
    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({
      error: { message: 'The proxy is not configured correctly for this backend.', data: { reason: 'config_error' } },
    })
    const line = proxy.log.lines.find((one) => one.includes('identity provider file unusable'))
    expect(line).toContain('"field":"caCertPath"')
    expect(line).toContain('"file":"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"')
  })
})

describe('an address that is not free', () => {
  it.each(['listen', 'admin'] as const)(
    '%s is reported with its location and the overriding option',
    async (listener) => {
      const address = await sockets.listen(createServer())
      const folder = await configFolder({
        'auth.json': OPEN,
        'proxy.json': proxyConfig({
          listen: { address: '127.0.0.1:0' },
          admin: { address: '127.0.0.1:0' },
          [listener]: { address },
          auth: { mode: 'anonymous' },
          routes: [{ name: 'r', path: '/', target: 'http://127.0.0.1:1', externalAuthConfigRef: { name: 'open' } }],
        }),
      })
      sockets.closing({ close: folder.remove })
      const start = (more: object) => runProxy({ configPaths: [folder.directory], env: {}, log: recordLog(), ...more })
      await expect(start({})).rejects.toMatchObject({
        lines: [
          expect.stringMatching(
            new RegExp(
              `proxy\\.json:1:\\d+ .*spec\\.${listener}\\.address  cannot listen on ${address}: EADDRINUSE; the address is in use, choose another one here or with --${listener}$`,
            ),
          ),
        ],
      })
      await expect(start({ [listener]: address })).rejects.toMatchObject({
        detail: `cannot listen on ${address}: EADDRINUSE`,
      })
    },
  )
})

describe('a registry', () => {
  it('says at its start and at a reload what is wrong with the files that it names, and where', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'extauth-registry-'))
    sockets.closing({ close: () => rm(folder, { recursive: true }) })
    // Whole at once, as those do who write files that are read meanwhile.
    const put = async (name: string, text: string) => {
      await writeFile(path.join(folder, `${name}.new`), text)
      await rename(path.join(folder, `${name}.new`), path.join(folder, name))
    }
    const file = (more: string, data = 'servers.json'): string =>
      `auth: { mode: oauth, oauth: { resourceUrl: "https://r", providers: [{ name: p, issuerUrl: "https://127.0.0.1:1", audience: a${more} }] } }\nregistries:\n- name: default\n  source: { file: ${data} }\n`
    await put('servers.json', '{"servers":[]}')
    await put('registry.yaml', file(', caCertPath: ca.pem'))
    const log = recordLog()
    const options = {
      configPath: path.join(folder, 'registry.yaml'),
      address: '127.0.0.1:0',
      internalAddress: '127.0.0.1:0',
      env: {},
      log,
    }
    const missing = expect.stringMatching(
      /registry\.yaml:1:\d+ {2}RegistryConfig {2}auth\.oauth\.providers\[0\]\.caCertPath {2}there is no file \S+ca\.pem/,
    ) as string
    await expect(runRegistryServer(options)).rejects.toMatchObject({ lines: [missing] })

    await put('registry.yaml', file(''))
    const registry = await runRegistryServer(options)
    sockets.closing(registry)
    // The watch of the file reports it as well, maybe only after the next one.
    const says = async (text: string, problem: RegExp) => {
      const before = log.lines.length
      await put('registry.yaml', text)
      await registry.reload()
      await vi.waitFor(() => {
        const refusals = log.lines.slice(before).filter((line) => line.includes('stays active'))
        expect(refusals).toContainEqual(expect.stringMatching(problem))
      })
    }
    await says(file(', caCertPath: ca.pem'), /registry\.yaml:1:\d+ .*there is no file/)
    await says(
      file('', 'none.json'),
      /registry\.yaml:4:3 {2}RegistryConfig {2}registries\[0\]\.source {2}registry default: unusable data/,
    )
  })
})
