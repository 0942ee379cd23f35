import { generateKeyPair, SignJWT } from 'jose'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, freePort, proxyConfig } from '../../support/e2e/run.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'
import { alone } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** As Keycloak answers everything below a realm that it does not have. */
const nowhere = (): Promise<string> =>
  sockets.http((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"Realm does not exist"}')
  })

/** A configuration whose identity provider is at another address than it says. */
async function setup() {
  const idp = await nowhere()
  const tokenUrl = `${idp}/realms/nope/protocol/openid-connect/token`
  const issuerUrl = `${idp}/realms/nope`
  const clientSecretRef = { name: 'client', key: 'secret' }
  const at = (name: string, more: object = {}) => ({
    name,
    path: `/${name}`,
    target: 'http://127.0.0.1:9/mcp',
    externalAuthConfigRef: { name: name === 'guarded' ? 'none' : name },
    ...more,
  })
  const provider = { name: 'idp', issuerUrl, audience: 'mcp' }
  const guarded = { auth: { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/guarded', providers: [provider] } } }
  return {
    tokenUrl,
    issuerUrl,
    files: {
      'own.json': authConfig('own', {
        type: 'clientCredentials',
        clientCredentials: { tokenUrl: `${tokenUrl}?key=not-for-a-log`, clientId: 'me', clientSecretRef },
      }),
      'none.json': authConfig('none', { type: 'unauthenticated' }),
      'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes: [at('own'), at('guarded', guarded)] }),
      'secrets/client/secret': 'a-secret',
    },
  }
}

const linesOf = (running: Running): Record<string, unknown>[] =>
  running
    .stderr()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['msg'] === 'request')

const WHERE = ['--config', '{dir}', '--secrets-dir', '{dir}/secrets']

describe('a wrong address of an identity provider', () => {
  it('is ours, not the caller’s, and the line of the request names it', async () => {
    const { files, tokenUrl, issuerUrl } = await setup()
    const listen = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--log-format', 'json']
    const args = ['proxy', ...WHERE, ...listen]
    const running = await startWith(sockets, files, args)
    const { url } = (await running.line('listening')) as { url: string }
    const lineOf = (route: string) => linesOf(running).find((line) => line['route'] === route)

    const found = async (route: string) => {
      await vi.waitFor(() => expect(lineOf(route)).toBeDefined(), { timeout: 30_000 })
      return lineOf(route)
    }

    expect((await alone(`${url}/own`, { body: {} })).status).toBe(500)
    const own = await found('own')
    expect(own).toMatchObject({ level: 40, reason: 'config_error' })
    expect(own?.['why']).toContain(`${tokenUrl} answered 404`)

    const { privateKey } = await generateKeyPair('ES256')
    const token = await new SignJWT({ sub: 'ada', aud: 'mcp' })
      .setProtectedHeader({ alg: 'ES256', kid: 'k' })
      .setIssuer(issuerUrl)
      .setExpirationTime('1h')
      .sign(privateKey)
    const headers = { authorization: `Bearer ${token}` }
    expect((await alone(`${url}/guarded`, { body: {}, headers })).status).toBe(502)
    const guarded = await found('guarded')
    expect(guarded).toMatchObject({ level: 40, reason: 'identity_provider_error' })
    expect(guarded?.['why']).toContain(`answered 404 at ${issuerUrl}/.well-known/openid-configuration`)
    expect(running.stderr()).not.toContain('not-for-a-log')
  }, 60_000)

  it('without a listener is named in the request’s log line, a backend’s too', async () => {
    const clientSecretRef = { name: 'client', key: 'secret' }
    const [dead, silent] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`]
    const target = (host: string) => `${host}/mcp?key=not-for-a-log`
    const route = (name: string, at: string, type = name) => ({
      name,
      path: `/${name}`,
      target: target(at),
      externalAuthConfigRef: { name: type },
    })
    const clientCredentials = { tokenUrl: `${dead}/token`, clientId: 'me', clientSecretRef }
    const files = {
      'own.json': authConfig('own', { type: 'clientCredentials', clientCredentials }),
      'none.json': authConfig('none', { type: 'unauthenticated' }),
      'proxy.json': proxyConfig({
        auth: { mode: 'anonymous' },
        routes: [route('own', 'http://127.0.0.1:9'), route('gone', silent, 'none')],
      }),
      'secrets/client/secret': 'a-secret',
    }
    const listen = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--log-format', 'json']
    const running = await startWith(sockets, files, ['proxy', ...WHERE, ...listen])
    const { url } = (await running.line('listening')) as { url: string }
    const whyOf = async (name: string) => {
      expect((await alone(`${url}/${name}`, { body: {} })).status).toBeGreaterThanOrEqual(502)
      const line = () => (linesOf(running).find(({ route: of }) => of === name)?.['why'] ?? '') as string
      await vi.waitFor(() => expect(line()).not.toBe(''), { timeout: 30_000 })
      return line()
    }
    expect(await whyOf('own')).toContain(
      `connection refused: no server listens at this host and port: ${dead} (ECONNREFUSED)`,
    )
    expect(await whyOf('gone')).toContain(
      `connection refused: no server listens at this host and port: ${silent} (ECONNREFUSED)`,
    )
    expect(
      running
        .stderr()
        .split('\n')
        .filter((line) => line.includes('"request"'))
        .join(),
    ).not.toContain('not-for-a-log')
  }, 60_000)

  it('is named by check', async () => {
    const { files, tokenUrl, issuerUrl } = await setup()
    const folder = await configFolder(files)
    const running = extauth(['check', ...WHERE].map((arg) => arg.replace('{dir}', folder.directory)))
    expect(await running.ended).toBe(1)
    await folder.remove()
    const said = running.stdout().replaceAll(/\s+/g, ' ')
    expect(said).toContain(`${tokenUrl} answered 404`)
    expect(said).toContain(`answered 404 at ${issuerUrl}/.well-known/openid-configuration`)
    expect(said).not.toContain('not-for-a-log')
  }, 60_000)
})
