import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { extauth } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'
import { alone } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Secrets as they come out of editors and shells, by what is wrong with each. */
const WRONG: Readonly<Record<string, string>> = {
  blank: 'token\n\n',
  bom: '\uFEFFtoken',
  quoted: '"token"',
  scheme: 'Bearer token',
}

const bearer = (name: string) => {
  const tokenSecretRef = { name: 'tokens', key: name }
  return authConfig(name, { type: 'bearerToken', bearerToken: { tokenSecretRef } })
}

/** A route for each of these secrets, all at one backend. */
function filesFor(secrets: Readonly<Record<string, string>>, target: string): Record<string, string> {
  const names = Object.keys(secrets)
  const routes = names.map((name) => ({ name, path: `/${name}`, target, externalAuthConfigRef: { name } }))
  return {
    ...Object.fromEntries(names.map((name) => [`${name}.json`, bearer(name)])),
    ...Object.fromEntries(names.map((name) => [`secrets/tokens/${name}`, secrets[name] ?? ''])),
    'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes }),
  }
}

const WHERE = ['--config', '{dir}', '--secrets-dir', '{dir}/secrets']
const unusable = Object.keys(WRONG).map((route) => ({ route, reason: 'config_error', field: 'tokenSecretRef' }))

describe('secrets that cannot be headers', () => {
  const start = async (secrets: Readonly<Record<string, string>>) => {
    const backend = await sockets.http((_request, response) => response.end('{}'))
    const listen = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--log-format', 'json']
    const running = await startWith(sockets, filesFor(secrets, `${backend}/mcp`), ['proxy', ...WHERE, ...listen])
    const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
    const readiness = async () => {
      const response = await fetch(`${admin}/readiness`)
      return { code: response.status, ...((await response.json()) as object) }
    }
    return { running, url, readiness }
  }

  it('stand in the readiness of the started program, each with its route, while others serve', async () => {
    const { url, readiness } = await start({ ...WRONG, good: 'token\n' })
    expect(await readiness()).toMatchObject({ code: 200, status: 'degraded', detail: { unusable } })
    expect((await alone(`${url}/good`, { body: {} })).status).toBe(200)
    for (const { route } of unusable) {
      const answer = await alone(`${url}/${route}`, { body: {} })
      expect({ route, status: answer.status }).toEqual({ route, status: 500 })
    }
  }, 60_000)

  it('make it unready where no route has another', async () => {
    const { readiness } = await start(WRONG)
    expect(await readiness()).toMatchObject({ code: 503, detail: { unusable } })
  }, 60_000)

  it('are warned of by validate, each by its file and what is wrong with it', async () => {
    const folder = await configFolder(filesFor({ ...WRONG, good: 'token\n' }, 'http://127.0.0.1:9/mcp'))
    const running = extauth(['validate', ...WHERE].map((arg) => arg.replace('{dir}', folder.directory)))
    expect(await running.ended).toBe(0)
    await folder.remove()
    const said = `${running.stdout()}${running.stderr()}`.replaceAll(/\s+/g, ' ')
    const problems = ['it ends with a blank line', 'it begins with a byte order mark', 'it is in quotes', '"Bearer "']
    for (const [index, name] of Object.keys(WRONG).entries())
      expect(said).toMatch(new RegExp(`tokens/${name} cannot be used: [^;]*${problems[index] ?? ''}`))
    expect(said).not.toContain('tokens/good')
  }, 60_000)
})
