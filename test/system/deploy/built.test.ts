import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { customResourceDefinition, JSON_SCHEMA_NAMES, jsonSchema } from '../../../src/load/publish/index.ts'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { halfServer, HOLD_MS } from '../../support/e2e/stopping/held.ts'
import { createSockets } from '../../support/sockets.ts'
import { ANY_LAB_PORT } from '../../support/lab-ports.ts'
import { type BuiltProgram, buildProgram } from '../../support/deploy/built-program.ts'

// The form that packages and images have: each command does its job once.
let program: BuiltProgram
beforeAll(() => {
  program = buildProgram()
}, 120_000)
afterAll(() => {
  program.remove()
  return sockets.closeAll()
})
const sockets = createSockets()

const WAIT = { timeout: 60_000, interval: 50 }
const portOf = (url: string): string => new URL(url).port
const status = async (url: string, token?: string): Promise<number> =>
  (await post(url, INITIALIZE, token === undefined ? {} : { authorization: `Bearer ${token}` })).status

/** The effect of a missing part. */
const BROKEN = /unexpected|Cannot find|not a function/
/** Input of `explain`; the others read nothing. */
const CLAIMS = JSON.stringify({ sub: 'alice', groups: ['admins'] })
const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: none
contexts: [{ name: none, context: { cluster: none, user: none } }]
clusters: [{ name: none, cluster: { server: 'https://127.0.0.1:9' } }]
users: [{ name: none, user: { token: none } }]
`
/** A route without a credential, to a closed port. */
const config = (auth: string): string => `apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: none }
spec: { type: unauthenticated }
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: p }
spec:
  auth: ${auth}
  routes: [{ name: r, path: /r, target: "http://127.0.0.1:9/mcp", externalAuthConfigRef: { name: none } }]
`

describe('the built program', { timeout: 120_000 }, () => {
  it('says what is in it that is not ours', () => {
    expect(existsSync(path.join(program.folder, 'src'))).toBe(false)
    const text = readFileSync(path.join(program.folder, 'dist/THIRD-PARTY-LICENSES'), 'utf8')
    for (const name of ['undici', 'zod', 'yaml', 'prom-client'])
      expect(text).toMatch(new RegExp(`^${name} [\\d.]+ \\(`, 'm'))
  })

  it.each([
    [['version'], /^mcp-extauth /],
    [['--help'], /Commands:/],
    [['validate', 'config/lab'], /^/],
    [['schema', '--crd'], /kind: CustomResourceDefinition/],
    [['test', 'config/lab'], /passed/],
    [['completion', 'bash'], /complete /],
    [['init', 'bearerToken', 'mine'], /mine/],
    [['login', '--help'], /--url/],
    [['logout', '--help'], /--url/],
    [['explain', '--config', 'config/lab', '--route', 'cloud-sts', '--claims', '-'], /lab-admin/],
  ] as const)('extauth %j', async (args, expected) => {
    const { code, stdout, stderr } = await program.run(args, CLAIMS)
    expect(stderr).not.toMatch(BROKEN)
    expect(stdout).toMatch(expected)
    expect(code).toBe(0)
  })

  it('prints the definitions and schemas that the sources describe', async () => {
    const definitions = await program.run(['schema', '--crd', 'MCPExternalAuthConfig'])
    expect(parse(definitions.stdout)).toEqual(customResourceDefinition('extauth.dev', 'MCPExternalAuthConfig'))
    const schemas = await program.run(['schema', '--all'])
    const expected = Object.fromEntries(JSON_SCHEMA_NAMES.map((name) => [name, jsonSchema(name)]))
    expect(JSON.parse(schemas.stdout)).toEqual(JSON.parse(JSON.stringify(expected)))
  })

  it('extauth check says what is not there, and extauth operator that it has no cluster', async () => {
    writeFileSync(path.join(program.folder, 'check.yaml'), config('{ mode: anonymous }'))
    const check = await program.run(['check', '--config', 'check.yaml'])
    expect(check.stderr).not.toMatch(BROKEN)
    expect(check.stdout).toMatch(/127\.0\.0\.1:9/)
    expect(check.code).toBe(1)
    const kubeconfig = path.join(program.folder, 'kubeconfig')
    writeFileSync(kubeconfig, KUBECONFIG)
    const operator = program.start([
      'operator',
      '--kubeconfig',
      kubeconfig,
      '--namespace',
      'x',
      '--operator-namespace',
      'x',
      '--webhook-address',
      'off',
      '--admin',
      '127.0.0.1:0',
    ])
    await operator.shows('msg')
    expect(operator.printed()).not.toMatch(BROKEN)
    operator.process.kill('SIGTERM')
    expect(await operator.ended).not.toBe(null)
  })

  it('extauth lab serves every type, logs in, shows its inspector, and extauth stdio carries messages there', async () => {
    const lab = program.start(['lab', ...ANY_LAB_PORT])
    await lab.shows('Stop with Ctrl-C')
    const address = (name: string): string =>
      new RegExp(`^  ${name} +(http://\\S+)`, 'm').exec(lab.printed())?.[1] ?? 'http://none'
    const [proxy, admin] = [address('proxy'), address('health, metrics')]
    const sub = [
      'lab',
      'token',
      '--sub',
      'alice',
      '--groups',
      'admins',
      '--idp-port',
      portOf(address('identity provider')),
    ]
    const token = (await program.run(sub)).stdout.trim()
    for (const route of [
      'bearer-token',
      'client-credentials',
      'obo',
      'token-exchange',
      'cloud-sts',
      'aws-service',
      'aws-chained',
    ])
      expect([route, await status(`${proxy}/${route}`, token)]).toEqual([route, 200])
    const login = await program.run([
      'lab',
      'login',
      '--route',
      '/upstream',
      '--user',
      'alice',
      '--port',
      portOf(proxy),
    ])
    expect(await status(`${proxy}/upstream`, login.stdout.trim())).toBe(200)
    for (const part of ['app.js', 'lib/preact.js', 'lib/uplot.css'])
      expect([part, (await fetch(`${admin}/inspect/page/${part}`)).status]).toEqual([part, 200])

    const stdio = program.start(['stdio', '--url', `${proxy}/unauthenticated`])
    stdio.process.stdin?.write(`${JSON.stringify(INITIALIZE)}\n`)
    await stdio.shows('"serverInfo"')
    stdio.process.stdin?.end()
    expect(await stdio.ended).toBe(0)
    lab.process.kill('SIGTERM')
    expect(await lab.ended).toBe(0)
  })

  it('extauth proxy runs workers, and loads what a reload asks for', async () => {
    const [folder, file] = [path.join(program.folder, 'own'), path.join(program.folder, 'own/proxy.yaml')]
    mkdirSync(folder)
    writeFileSync(file, config('{ mode: anonymous }'))
    const args = ['--config', file, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--workers', '2']
    const proxy = program.start(['proxy', ...args])
    await proxy.shows('proxy at ')
    const [, url = '', admin = ''] = /proxy at (\S+), admin listener at (\S+)/.exec(proxy.printed()) ?? []
    expect(await status(`${url}/r`)).toBe(502)
    expect(await (await fetch(`${admin}/metrics`)).text()).toContain('process_cpu_seconds_total')
    const provider = '{ name: idp, issuerUrl: "http://127.0.0.1:1", audience: us }'
    writeFileSync(file, config(`{ mode: oauth, oauth: { resourceUrl: "${url}", providers: [${provider}] } }`))
    proxy.process.kill('SIGHUP')
    await expect.poll(() => status(`${url}/r`), WAIT).toBe(401)
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  })

  it('extauth proxy serves a configuration that is large enough for a thread of its own', async () => {
    const file = path.join(program.folder, 'large.yaml')
    const more = Array.from(
      { length: 1000 },
      (_, index) =>
        `    - { name: r${index}, path: /r/${index}, target: "http://127.0.0.1:9/mcp", externalAuthConfigRef: { name: none } }`,
    )
    writeFileSync(
      file,
      config('{ mode: anonymous }').replace(/routes: \[(.*)\]/, `routes:\n    - $1\n${more.join('\n')}`),
    )
    const proxy = program.start(['proxy', '--config', file, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
    await proxy.shows('proxy at ')
    const [, url = ''] = /proxy at (\S+),/.exec(proxy.printed()) ?? []
    expect(await status(`${url}/r/999`)).toBe(502)
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  })

  it('extauth proxy answers what runs, seconds past SIGTERM', async () => {
    const half = await halfServer(sockets)
    const file = path.join(program.folder, 'held.yaml')
    writeFileSync(file, config('{ mode: anonymous }').replace('http://127.0.0.1:9', half.url))
    const proxy = program.start(['proxy', '--config', file, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
    await proxy.shows('proxy at ')
    const [, url = ''] = /proxy at (\S+),/.exec(proxy.printed()) ?? []
    const call = fetch(`${url}/r`, { method: 'POST', body: '{}' }).then((answer) => answer.text())
    await half.begun(1)
    proxy.process.kill('SIGTERM')
    await new Promise((resolve) => setTimeout(resolve, HOLD_MS))
    half.finish()
    expect(await call).toBe('{"half":1}')
    expect(await proxy.ended).toBe(0)
  })

  it('extauth registry lists a file that is large enough for a thread of its own', async () => {
    const servers = Array.from({ length: 3000 }, (_, index) => ({
      server: {
        name: `com.example/s${index}`,
        description: 'd'.repeat(90),
        version: '1.0.0',
        remotes: [{ type: 'streamable-http', url: 'https://example.com/mcp' }],
      },
    }))
    writeFileSync(path.join(program.folder, 'servers.json'), JSON.stringify({ servers }))
    const config = path.join(program.folder, 'registry.yaml')
    writeFileSync(
      config,
      'auth: { mode: anonymous }\nregistries:\n  - { name: default, source: { file: ./servers.json } }\n',
    )
    const registry = program.start([
      'registry',
      '--config',
      config,
      '--address',
      '127.0.0.1:0',
      '--internal-address',
      '127.0.0.1:0',
    ])
    await expect.poll(() => registry.printed(), WAIT).toMatch(/http:\/\/127\.0\.0\.1:\d+/)
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(registry.printed())?.[0] ?? ''
    const list = async (): Promise<unknown> =>
      fetch(`${url}/registry/default/v0.1/servers?search=s2999`).then((answer) => answer.json())
    await expect.poll(async () => JSON.stringify(await list()), WAIT).toContain('com.example/s2999')
    registry.process.kill('SIGTERM')
    expect(await registry.ended).toBe(0)
  })
})
