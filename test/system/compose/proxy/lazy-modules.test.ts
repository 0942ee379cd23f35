import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadModules } from '../../../../src/compose/proxy/pools.ts'
import type { ResolvedProxy } from '../../../../src/load/index.ts'

const ROOT = path.join(import.meta.dirname, '../../../..')
const LAUNCHER = path.join(ROOT, 'bin/extauth.cjs')
/** The launched program, or its sources. */
const SOURCES = path.join(ROOT, 'src/main.ts')
/** Says at its end which modules were loaded. */
const WITNESS = `import { registerHooks } from 'node:module'
const seen = []
registerHooks({ load(url, context, next) { seen.push(url); return next(url, context) } })
process.on('exit', () => process.stdout.write('\\nLOADED ' + seen.join(' ')))`

let directory: string
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'lazy-modules-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const config = (parts: object): ResolvedProxy => ({ authServers: [], routes: [], ...parts }) as unknown as ResolvedProxy

describe('parts of the program that only some configurations need', () => {
  it('are loaded for those that need them', async () => {
    const none = await loadModules(config({}))
    expect(none).toEqual({ authServer: undefined, telemetry: undefined })
    const server = await loadModules(config({ authServers: [{}] }))
    expect(server.authServer?.openAuthServer).toBeTypeOf('function')
    const followed = await loadModules(config({ routes: [{ telemetry: {} }] }))
    expect(followed.telemetry?.openReceiver).toBeTypeOf('function')
  })

  /** Modules that a proxy with this config has loaded when it listens. */
  async function modulesOf(spec: string, auth = '{ mode: anonymous }'): Promise<readonly string[]> {
    const yaml = `apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: own }
spec: ${spec}
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: p }
spec:
  listen: { address: "127.0.0.1:0" }
  admin: { address: "127.0.0.1:0" }
  auth: ${auth}
  routes: [{ name: r, path: /, target: "http://127.0.0.1:9/mcp", externalAuthConfigRef: { name: own } }]
`
    mkdirSync(path.join(directory, 'secrets/s'), { recursive: true })
    writeFileSync(path.join(directory, 'secrets/s/token'), 'a-token')
    writeFileSync(path.join(directory, 'proxy.yaml'), yaml)
    writeFileSync(path.join(directory, 'witness.mjs'), WITNESS)
    const witness = ['--import', path.join(directory, 'witness.mjs')]
    const child = spawn(process.execPath, [...witness, SOURCES, 'proxy', '--config', 'proxy.yaml'], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let out = ''
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.stdout.on('data', (chunk: Buffer) => {
      if (!out.includes('proxy at ') && chunk.includes('proxy at ')) child.kill('SIGTERM')
      out += chunk.toString()
    })
    await ended
    return out.slice(out.indexOf('LOADED ')).split(' ')
  }

  it('are not loaded by a proxy that adds a bearer token', async () => {
    const modules = await modulesOf('{ type: bearerToken, bearerToken: { tokenSecretRef: { name: s, key: token } } }')
    expect(modules.some((url) => url.includes('/src/proxy/'))).toBe(true)
    for (const part of [
      '/src/authserver/',
      '/src/telemetry/',
      '/src/operator/',
      '/src/registry/',
      '/src/kube/',
      '/jose/',
      '/@opentelemetry/',
      '/undici/lib/web/',
      '/prom-client/lib/pushgateway',
      '/fastify/',
      '/ioredis/',
      '/client-sts/',
      '/@bufbuild/cel/',
    ])
      expect(modules.filter((url) => url.includes(part))).toEqual([])
  }, 30_000)

  it('the places of an AWS identity are not loaded where the token of the caller goes to STS', async () => {
    const roles = 'region: eu-central-1, fallbackRoleArn: "arn:aws:iam::123456789012:role/r"'
    const provider = '{ name: p, issuerUrl: "https://issuer.example", audience: a }'
    const oauth = `{ mode: oauth, oauth: { resourceUrl: "http://127.0.0.1:1", providers: [${provider}] } }`
    const modules = await modulesOf(`{ type: cloudSts, cloudSts: { ${roles} } }`, oauth)
    expect(modules.some((url) => url.includes('/client-sts/'))).toBe(true)
    expect(modules.filter((url) => /\/credential-provider(s|-ini|-imds|-http)\//.test(url))).toEqual([])
  }, 30_000)
})

describe('extauth version', () => {
  it('is answered by the launcher with the line of the command', async () => {
    const { versionLine } = await import('../../../../src/compose/version.ts')
    const child = spawn(process.execPath, [LAUNCHER, 'version'], { stdio: ['ignore', 'pipe', 'ignore'] })
    let out = ''
    for await (const chunk of child.stdout) out += String(chunk)
    expect(out).toBe(`${versionLine()}\n`)
  })
})
