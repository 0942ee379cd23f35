import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ConfigError } from '../../../src/compose/config-error.ts'
import { loadProxyConfig } from '../../../src/compose/load-config.ts'
import { runValidate } from '../../../src/cli/validate.ts'
import { TLS } from '../../support/tls.ts'
import { ioOf } from '../../support/compose/io.ts'

let root = ''
const at = (name: string): string => path.join(root, name)

const head = (kind: string, name: string): string =>
  `apiVersion: extauth.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name} }\n`
const TOKEN = `${head('MCPExternalAuthConfig', 'token')}spec: { type: bearerToken, bearerToken: { tokenSecretRef: { name: a, key: b } } }\n`
const REMOTE = `${head('MCPRemoteProxy', 'notes')}spec: { remoteUrl: "https://notes.example.com/mcp", externalAuthConfigRef: { name: token } }\n`
const PROVIDER = 'name: idp, issuerUrl: "https://idp.example.com", audience: notes'
const section = (provider: string): string =>
  `auth: { mode: oauth, oauth: { resourceUrl: "https://notes.example.com", providers: [{ ${provider} }] } }\n`

const FILES: Readonly<Record<string, string>> = {
  'token.yaml': TOKEN,
  'remote.yaml': `${TOKEN}---\n${REMOTE}`,
  'several.yaml': `${TOKEN}---\n${TOKEN.replace('name: token', 'name: other')}`,
  'exchange.yaml': `${head('MCPExternalAuthConfig', 'x')}spec: { type: tokenExchange, tokenExchange: { tokenUrl: "https://idp.example.com/t", audience: b, caCertPath: nowhere.pem } }\n`,
  'configmap-oidc.yaml': `${TOKEN}---\n${REMOTE.replace('{ name: token }', '{ name: token }, oidcConfig: { type: configMap, configMap: { name: x } }')}`,
  'virtual.yaml': `${head('VirtualMCPServer', 'v')}spec: { outgoingAuth: { default: { externalAuthConfigRef: { name: missing } } } }\n`,
  'callers.yaml': section(PROVIDER),
  'callers-http.yaml': section('name: idp, issuerUrl: "http://idp.example.com", audience: notes'),
  'callers-files.yaml': section(`${PROVIDER}, caCertPath: nowhere.pem`),
  'callers-bare.yaml': 'mode: oauth\noauth: { resourceUrl: "https://n", providers: [] }\n',
  'registry.yaml': `${section(`${PROVIDER}, caCertPath: nowhere.pem`)}registries: [{ name: default, source: { file: none.json } }]\n`,
  'proxy.yaml': `${TOKEN}---\n${head('ProxyConfig', 'p')}spec:\n  secretsDirectory: sec\n  auth: { mode: anonymous }\n  routes:\n  - { name: r, path: /r, target: "https://b.example.com", externalAuthConfigRef: { name: token }, targetTls: { caCertPath: ca.pem } }\n`,
  'ca.pem': TLS.ca.toString(),
  'foreign/deployment.yaml':
    'apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: ConfigMap\ndata: { a: b }\n',
  'foreign/notes.txt': 'hello',
  'empty.yaml': '',
  'comment.yaml': '# to be written\n---\n',
  'group.yaml': TOKEN.replace('extauth.dev/', ''),
  'bare/notes.txt': 'hello',
  'sec/other/x': 'y',
}

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'validate-inputs-'))
  for (const [name, text] of Object.entries(FILES)) {
    await mkdir(path.dirname(at(name)), { recursive: true })
    await writeFile(at(name), text)
  }
})
afterAll(() => rm(root, { recursive: true }))

async function run(...argv: string[]) {
  const { io, out: written } = ioOf()
  const code = await runValidate(argv, io)
  return { code, lines: written.stdout.replaceAll(`${root}/`, '').split('\n').slice(0, -1) }
}

describe('files without supported documents', () => {
  test.each(['foreign', 'bare', 'empty.yaml', 'comment.yaml', 'group.yaml'])(
    '%s: a start says of it what validate says, and where',
    async (name) => {
      const { code, lines } = await run(at(name))
      expect(code).toBe(1)
      const started = loadProxyConfig({ configPaths: [at(name)] }).catch((error: ConfigError) => error.lines)
      expect(lines).toEqual(((await started) as string[]).map((line) => line.replaceAll(`${root}/`, '')))
      expect(lines[0]).toMatch(new RegExp(`^${name}:1:\\d+ `))
    },
  )

  test('a start of documents that serve nothing names the files', async () => {
    const problem = `${at('token.yaml')}:1:1  no routes to serve, expected a ProxyConfig with routes`
    await expect(loadProxyConfig({ configPaths: [at('token.yaml')] })).rejects.toThrow(problem)
  })
})

describe('documents without a ProxyConfig', () => {
  test('manifests are what a proxy would run', async () => {
    expect(await run(at('remote.yaml'))).toEqual({ code: 0, lines: [] })
    const open = await run(at('remote.yaml'), '--listen', ':8080')
    expect(open.code).toBe(1)
    expect(open.lines).toEqual([
      expect.stringMatching(/^remote\.yaml:9:\d+ .*callers are anonymous and the bind is not loopback/),
    ])
  })

  test('who may call comes from --callers, and from nowhere with --ignore-manifest-callers', async () => {
    const alone = await run(at('configmap-oidc.yaml'))
    expect(alone.code).toBe(1)
    expect(alone.lines).toEqual([
      expect.stringContaining('refers to a ConfigMap that is not read here; expected --callers FILE'),
    ])
    const called = await run(at('configmap-oidc.yaml'), '--callers', at('callers.yaml'), '--listen', ':8080')
    expect(called.code).toBe(0)
    expect(called.lines).toEqual([expect.stringContaining('warning: defines callers')])
    expect((await run(at('configmap-oidc.yaml'), '--ignore-manifest-callers')).code).toBe(0)
  })

  test('a callers file is validated as with --callers', async () => {
    const message = /plain http is only used for loopback and in-cluster names, expected https/
    const alone = await run(at('callers-http.yaml'))
    expect(alone).toEqual({ code: 1, lines: [expect.stringMatching(message)] })
    const called = await run(at('remote.yaml'), '--callers', at('callers-http.yaml'))
    expect(called).toEqual(alone)
    expect((await run(at('callers.yaml'))).code).toBe(0)
    expect(await run(at('callers-bare.yaml'))).toEqual({
      code: 1,
      lines: ['callers-bare.yaml:2:36  AuthSection  oauth.providers  too short, expected at least 1 entry'],
    })
  })

  test('one that was not requested is reported', async () => {
    expect(await run(at('remote.yaml'), at('callers.yaml'))).toEqual({
      code: 0,
      lines: [expect.stringMatching(/^callers\.yaml:1:1 {2}AuthSection {2}auth {2}warning: this section is not used/)],
    })
  })

  test('a config alone, registry files and servers of several backends are checked for themselves', async () => {
    const [alone, registry, virtual] = [
      await run(at('exchange.yaml')),
      await run(at('registry.yaml')),
      await run(at('virtual.yaml')),
    ]
    expect(alone).toEqual({
      code: 1,
      lines: [
        expect.stringMatching(
          /^exchange\.yaml:4:\d+ .*spec\.tokenExchange\.caCertPath {2}there is no file nowhere\.pem/,
        ),
      ],
    })
    expect(registry.code).toBe(1)
    expect(registry.lines).toEqual([
      expect.stringMatching(
        /^registry\.yaml:1:\d+ {2}RegistryConfig {2}auth\.oauth\.providers\[0\]\.caCertPath {2}there is no file/,
      ),
      expect.stringMatching(
        /^registry\.yaml:2:\d+ .*source\.file {2}warning: no file none\.json; this registry returns 503/,
      ),
    ])
    expect(virtual.lines).toEqual([expect.stringContaining('no MCPExternalAuthConfig "missing"')])
  })

  test('the short form takes the config of the files', async () => {
    const target = ['--target', 'https://b.example.com/mcp']
    expect(await run(at('token.yaml'), ...target)).toEqual({ code: 0, lines: [] })
    expect(await run('--external-auth', `${at('several.yaml')}#other`, ...target)).toEqual({ code: 0, lines: [] })
    expect(await run(at('several.yaml'), ...target)).toEqual({
      code: 1,
      lines: ['--external-auth  expected FILE#name with one of token, other'],
    })
    expect((await run(at('exchange.yaml'), ...target)).lines[0]).toContain('callers are anonymous here')
    expect(await run('--external-auth', at('token.yaml'))).toMatchObject({ code: 2 })
  })
})

describe('files that hold no supported document', () => {
  const kinds =
    'MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, ProxyConfig, RoleTest, MCPServer, MCPRemoteProxy, MCPServerEntry, VirtualMCPServer'

  test.each([
    ['a file', 'foreign/deployment.yaml', 'foreign/deployment.yaml:1:1  none of 2 documents in 1 file is supported'],
    ['a folder', 'foreign', 'foreign:1:1  none of 2 documents in 1 file is supported'],
  ])('%s: what was looked for, and where', async (_name, name, start) => {
    const { code, lines } = await run(at(name))
    expect(code).toBe(1)
    expect(lines).toEqual([
      `${start}; supported: ${kinds}, a registry file ("auth" and "registries") and an "auth" section, in files that end in .yaml, .yml or .json and in ConfigMaps`,
    ])
  })

  test('a folder without such files', async () => {
    expect(await run(at('bare'))).toEqual({
      code: 1,
      lines: [`bare:1:1  no file in this directory ends in .yaml, .yml or .json; supported kinds: ${kinds}`],
    })
  })

  test('beside others they are skipped', async () => {
    expect((await run(at('foreign'), at('token.yaml'))).code).toBe(0)
  })
})

describe('files and secrets that are named', () => {
  test('are left out with --no-files', async () => {
    for (const name of ['exchange.yaml', 'registry.yaml', 'callers-files.yaml']) {
      expect((await run(at(name))).code).toBe(1)
      expect(await run(at(name), '--no-files')).toEqual({ code: 0, lines: [] })
    }
    await rm(at('ca.pem'))
    const found = await run(at('proxy.yaml'))
    expect(found.code).toBe(1)
    expect(found.lines[0]).toMatch(/targetTls\.caCertPath {2}there is no file ca\.pem;.* \(route "r"\)$/)
    expect((await run(at('proxy.yaml'), '--no-files')).code).toBe(0)
    await writeFile(at('ca.pem'), TLS.ca)
  })

  test('a secret that is missing or blank may come later: a warning, with the place where it belongs', async () => {
    expect(await run(at('proxy.yaml'))).toEqual({
      code: 0,
      lines: [
        'proxy.yaml:4:43  MCPExternalAuthConfig/token  spec.bearerToken.tokenSecretRef  warning: the secret a/b does not exist, expected sec/a/b; requests that need it fail with secret_unavailable until it has a value (route "r")',
      ],
    })
    await mkdir(at('sec/a'))
    await writeFile(at('sec/a/b'), '\n')
    expect((await run(at('proxy.yaml'))).lines).toEqual([expect.stringContaining('the secret a/b in sec is blank')])
    await writeFile(at('sec/a/b'), 'value')
    expect(await run(at('proxy.yaml'))).toEqual({ code: 0, lines: [] })
    await rm(at('sec/a'), { recursive: true })
  })

  test.each([
    ['value\n\n', 'it ends with a blank line'],
    ['\uFEFFvalue', 'it begins with a byte order mark'],
    ['"value"', 'it is in quotes'],
    ['Bearer value', 'it begins with "Bearer ", which the proxy adds'],
  ])('a secret that cannot be a header is a warning that does not show it: %j', async (text, why) => {
    await mkdir(at('sec/a'))
    await writeFile(at('sec/a/b'), text)
    const { code, lines } = await run(at('proxy.yaml'))
    expect([code, lines]).toEqual([0, [expect.stringContaining(`sec/a/b cannot be used: ${why}; expected a file`)]])
    expect(lines.join()).not.toContain('value')
    await rm(at('sec/a'), { recursive: true })
  })

  test.each([
    ['secret\n\n', 'it ends with a blank line'],
    ['\uFEFFsecret', 'it begins with a byte order mark'],
  ])('a client secret that is hardly what was meant is a warning that does not show it: %j', async (text, why) => {
    const client = 'clientId: c, clientSecretRef: { name: a, key: b }'
    const exchange = `{ type: tokenExchange, tokenExchange: { tokenUrl: "https://idp.example.com/t", audience: b, ${client} } }`
    await writeFile(at('client.yaml'), `${head('MCPExternalAuthConfig', 'x')}spec: ${exchange}\n`)
    await mkdir(at('sec/a'))
    await writeFile(at('sec/a/b'), text)
    const { code, lines } = await run(at('client.yaml'), '--secrets-dir', at('sec'))
    expect([code, lines]).toEqual([0, [expect.stringContaining(`sec/a/b is probably wrong: ${why}; it is used`)]])
    await rm(at('sec/a'), { recursive: true })
  })

  test('without a secrets directory nothing is said of secrets, but with --verbose', async () => {
    const options = [at('proxy.yaml'), '--secrets-dir', at('nowhere')]
    expect(await run(...options)).toEqual({ code: 0, lines: [] })
    expect((await run(...options, '--verbose')).lines).toEqual([
      '(secrets)  note: secrets were not checked: no directory nowhere; set --secrets-dir',
    ])
  })

  test('of what no process uses they are looked at, too, though a proxy starts without them', async () => {
    const unused = `${FILES['proxy.yaml'] ?? ''}---\n${FILES['exchange.yaml'] ?? ''}`
    await writeFile(at('unused.yaml'), unused)
    const { code, lines } = await run(at('unused.yaml'), '--secrets-dir', at('nowhere'))
    expect(code).toBe(1)
    expect(lines).toEqual([
      expect.stringMatching(/^unused\.yaml:\d+:\d+ .*\/x .*there is no file nowhere\.pem.*referencing file$/),
    ])
    const config = await loadProxyConfig({ configPaths: [at('unused.yaml')] })
    expect(config.places.files.map((file) => [path.basename(file.path), file.at.routes])).toEqual([
      ['sec', undefined],
      ['ca.pem', ['r']],
    ])
    expect(JSON.stringify(config)).not.toContain('places')
  })
})

describe('the environment', () => {
  test.each([
    ['HTTPS_PROXY', '(environment)  HTTPS_PROXY is not a proxy URL, expected http://HOST:PORT'],
    ['AWS_ENDPOINT_URL_STS', '(environment)  AWS_ENDPOINT_URL_STS is not an http(s) URL without credentials'],
    ['EXTAUTH_LISTEN', undefined],
  ])('%s counts as it does for the proxy', async (name, line) => {
    const { io, out: written } = ioOf({ env: { [name]: 'no no' } })
    const code = await runValidate([at('proxy.yaml'), '--secrets-dir', at('nowhere')], io)
    if (line === undefined) expect(code).toBe(2)
    else {
      expect(code).toBe(1)
      expect(written.stdout).toBe(`${line}\n`)
    }
  })
})
