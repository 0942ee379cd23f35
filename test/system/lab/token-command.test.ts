import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { main } from '../../../src/cli/commands/index.ts'
import type { LabIdentityProvider } from '../../../lab/index.ts'
import { startProvider } from '../../support/lab/standins.ts'

let identity: LabIdentityProvider
let port: string

beforeAll(async () => {
  identity = await startProvider({ now: () => Date.now(), advance: () => undefined })
  port = new URL(identity.url).port
})
afterAll(() => identity.close())

async function run(argv: readonly string[], env: Record<string, string> = {}) {
  const out = { stdout: '', stderr: '' }
  const code = await main(['lab', 'token', ...argv], {
    stdout: (text) => void (out.stdout += text),
    stderr: (text) => void (out.stderr += text),
    env,
    stdin: () => Promise.resolve(''),
    stop: new Promise(() => undefined),
    onReload: () => undefined,
  })
  return { code, ...out }
}

describe('extauth lab token', () => {
  test('prints the token and nothing else', async () => {
    const argv = ['--sub', 'alice', '--groups', 'admins,dev', '--ttl', '5m', '--claim', 'dept=x', '--claim', 'level=3']
    const { code, stdout, stderr } = await run([...argv, '--idp-port', port])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const claims = decodeJwt(stdout)
    expect(claims).toMatchObject({ sub: 'alice', groups: ['admins', 'dev'], dept: 'x', level: 3, aud: 'extauth-lab' })
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(300)
  })

  test('takes audiences, scope and algorithm', async () => {
    const argv = ['--sub', 'bob', '--aud', 'a', '--aud', 'b', '--scope', 'x y', '--alg', 'ES256']
    const { stdout } = await run([...argv, '--idp-port', port])
    expect(decodeJwt(stdout)).toMatchObject({ aud: ['a', 'b'], scope: 'x y' })
    expect(decodeProtectedHeader(stdout).alg).toBe('ES256')
  })

  test('gives an opaque token, with the port from the environment', async () => {
    const { code, stdout } = await run(['--sub', 'bob', '--opaque'], { EXTAUTH_IDP_PORT: port })
    expect([code, /^[\w-]{43}\n$/.test(stdout)]).toEqual([0, true])
  })

  test.each([[['--ttl=-1m']], [['--ttl', '-1m']]])('%j gives a token that has already expired', async (ttl) => {
    const { stdout } = await run(['--sub', 'bob', ...ttl, '--idp-port', port])
    expect((decodeJwt(stdout).exp ?? 0) * 1000).toBeLessThan(Date.now())
  })

  test.each([
    [[], 2, '--sub NAME'],
    [['--sub', 'a', '--ttl', 'soon'], 2, '--ttl must be a duration'],
    [['--sub', 'a', '--claim', 'x'], 2, '--claim must be NAME=VALUE'],
    [['--sub', 'a', '--idp-port', 'x'], 2, '--idp-port must be a port number'],
    [['--sub', 'a', '--idp-port', '1'], 1, 'no lab answers at 127.0.0.1:1'],
    [['--subject', 'a'], 2, 'Unknown option --subject'],
  ])('%j ends with exit code %i', async (argv, expected, message) => {
    const { code, stdout, stderr } = await run(argv)
    expect([code, stdout]).toEqual([expected, ''])
    expect(stderr).toContain(message)
  })

  test('says what the identity provider refused', async () => {
    const { code, stderr } = await run(['--sub', 'a', '--ttl', '999h', '--idp-port', port])
    expect(code).toBe(1)
    expect(stderr).toContain('refused')
  })
})
