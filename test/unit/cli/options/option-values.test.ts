import { describe, expect, it } from 'vitest'
import { specsOf } from '../../../../src/cli/command.ts'
import { COMMANDS, main } from '../../../../src/cli/commands/index.ts'
import { environmentName, type OptionSpec } from '../../../../src/cli/options/options.ts'
import * as kinds from '../../../../src/cli/options/option-values.ts'
import { ioOf } from '../../../support/compose/io.ts'

const specs = (await Promise.all(Object.values(COMMANDS).map(specsOf))).flat()
const rows = specs.flatMap(({ name, options }) =>
  Object.entries<OptionSpec>(options).map(([option, spec]) => [name, option, spec] as const),
)
const valued = rows.filter(([, , { type }]) => type === 'string')

/** No kind takes these. */
const WRONG = ['', ' ', 'a\nb', '\0']

async function run(command: string, words: readonly string[], env: Record<string, string> = {}) {
  const { io, out } = ioOf({ env })
  return { code: await main([...command.split(' ').slice(1), ...words], io), ...out }
}

describe('the value of an option', () => {
  it('is checked for all that there are', () => {
    expect(valued.length).toBeGreaterThan(50)
  })

  it.each(valued)('%s --%s: a wrong one ends with exit code 2 before anything starts', async (command, option) => {
    for (const wrong of WRONG) {
      const { code, stdout, stderr } = await run(command, [`--${option}=${wrong}`])
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(new RegExp(`^extauth [a-z ]+: --${option} must be `))
    }
  })

  it.each(valued)('%s --%s: the same from its variable', async (command, option) => {
    const { code, stdout, stderr } = await run(command, [], { [environmentName(option)]: ' \n' })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`${environmentName(option)} must be `)
  })

  it.each(rows.filter(([, , { type }]) => type === 'boolean'))(
    '%s --%s: a switch takes none, and its variable is true or false',
    async (command, option) => {
      expect(await run(command, [`--${option}=x`])).toMatchObject({ code: 2, stdout: '' })
      expect(await run(command, [], { [environmentName(option)]: 'x' })).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`${environmentName(option)} must be true or false`) as string,
      })
    },
  )

  it.each([
    ['extauth proxy', '--listen', 'nonsense', 'host:port, :port or unix:/path'],
    ['extauth proxy', '--listen', '127.0.0.1:99999', 'host:port'],
    ['extauth proxy', '--target', 'backend', 'an http or https URL'],
    ['extauth proxy', '--target', 'https://user:pass@x.example', 'an http or https URL'],
    ['extauth proxy', '--namespace', 'A_B', 'a namespace'],
    ['extauth proxy', '--api-group', 'x', 'a DNS name'],
    ['extauth proxy', '--drain-grace', '-1s', 'a duration'],
    ['extauth proxy', '--log-level', 'loud', 'one of debug, info, warn, error, silent'],
    ['extauth proxy', '--log-format', 'xml', 'human or json'],
    ['extauth registry', '--drain-grace', '10', 'a duration'],
    ['extauth registry', '--address', '8080', 'host:port'],
    ['extauth operator', '--webhook-cert-lifetime', '1s', 'at least 10s'],
    ['extauth operator', '--webhook-address', 'none', 'host:port, :port or unix:/path, or off'],
    ['extauth lab', '--port', '65536', 'a port number'],
    ['extauth lab token', '--idp-port', '-1', 'a port number'],
    ['extauth lab token', '--alg', 'none', 'RS256 or ES256'],
    ['extauth lab token', '--claim', 'x', 'NAME=VALUE'],
    ['extauth lab token', '--ttl', '-soon', 'argument is ambiguous'],
    ['extauth lab token', '--ttl', '--1m', 'argument is ambiguous'],
    ['extauth lab login', '--route', 'upstream', 'the path of a route'],
    ['extauth validate', '--output', 'xml', 'text or json'],
    ['extauth explain', '--output', 'yaml', 'text or json'],
    ['extauth schema', '--api-group', 'UPPER.example', 'a DNS name'],
  ])('%s %s %s is refused with what is right', async (command, option, value, expected) => {
    const { code, stdout, stderr } = await run(command, [option, value])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(expected)
  })

  it('is not repeated: it may be a secret at the wrong place', async () => {
    expect((await run('extauth proxy', ['--listen', 'hunter2'])).stderr).not.toContain('hunter2')
  })

  it.each([
    [kinds.LISTEN_ADDRESS, [':8080', '127.0.0.1:0', '[::1]:80', 'unix:/run/x.sock']],
    [kinds.HTTP_URL, ['https://x.example/mcp?a=1', 'http://[::1]:8080']],
    [kinds.SIGNED_DURATION, ['-1m', '1h30m', '90s', '-1.5h']],
    [kinds.PORT, ['0', '65535']],
    [kinds.FILE, ['-', 'my file.yaml', '../ä', 'auth.yaml#name']],
    [kinds.IMAGE, ['registry.example:5000/a/b:1.0', 'x@sha256:00']],
    [kinds.CLAIM, ['a=', 'a={"b":"c=d"}']],
    [kinds.NAMESPACE, ['default', 'a-1']],
    [kinds.API_GROUP, ['extauth.dev', 'a.b-c.example']],
  ])('%o takes %j', (kind, texts) => {
    for (const text of texts) expect([text, kind.accepts(text)]).toEqual([text, true])
  })

  it.each([
    ['-1m', -60],
    ['1m30s', 90],
    ['-1.5h', -5400],
    ['0s', 0],
    ['--1m', undefined],
    ['-', undefined],
    ['1', undefined],
  ])('%s is %s seconds', (text, seconds) => {
    expect(kinds.signedSeconds(text)).toEqual(seconds === 0 ? expect.closeTo(0) : seconds)
  })
})
