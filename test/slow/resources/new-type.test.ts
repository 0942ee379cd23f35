import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

// A type of external auth that was forgotten somewhere must not compile: the compiler itself is asked. What compiles works
// in every command: the commands of the changed product are run.
const root = path.join(import.meta.dirname, '../../..')
const TYPES = 'src/resources/auth-types.ts'
const SOURCES = 'src/obtain/sources.ts'
const RECORD = `bearerTokenRecord`
let project: string

beforeAll(async () => {
  project = await mkdtemp(path.join(tmpdir(), 'new-type-'))
  for (const folder of ['src', 'lab', 'config'])
    await cp(path.join(root, folder), path.join(project, folder), { recursive: true })
  await symlink(path.join(root, 'node_modules'), path.join(project, 'node_modules'))
  await cp(path.join(root, 'package.json'), path.join(project, 'package.json'))
  const { compilerOptions } = JSON.parse(await readFile(path.join(root, 'tsconfig.json'), 'utf8')) as object & {
    compilerOptions: object
  }
  const tsconfig = {
    compilerOptions,
    files: ['src/obtain/sources.ts', 'src/resources/index.ts'],
    include: ['src/**/*.d.ts'],
  }
  await writeFile(path.join(project, 'tsconfig.json'), JSON.stringify(tsconfig))
})
afterAll(() => rm(project, { recursive: true, force: true }))

type Change = readonly [from: string, to: string]

/** Puts a file of the product into the copy, with these replacements. */
async function change(name: string, changes: readonly Change[]): Promise<void> {
  let text = await readFile(path.join(root, name), 'utf8')
  for (const [from, to] of changes) {
    expect(text).toContain(from)
    text = text.replace(from, to)
  }
  await writeFile(path.join(project, name), text)
}

/** Compiler errors after these changes in the list and table of types, one per line. */
async function compileWith(...changes: readonly Change[]): Promise<string[]> {
  await change(TYPES, changes)
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc')
  // With several threads it checks what many files share several times.
  const args = [compiler, '--pretty', 'false', '--singleThreaded', '-p', project]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: project }).catch(
    (error: { stdout: string }) => error,
  )
  return stdout.split('\n').filter((line) => line.includes('error TS'))
}

/** A command of the changed product. */
async function run(...argv: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...process.env, NODE_COMPILE_CACHE: path.join(project, 'compiled') }
  const main = path.join(project, 'src/main.ts')
  const started = promisify(execFile)(process.execPath, [main, ...argv], { cwd: project, env })
  return started.then(
    (said) => ({ code: 0, ...said }),
    (failed: { code: number; stdout: string; stderr: string }) => failed,
  )
}

/** Lists new types, and gives those a record that are to have one. */
const listed = (...names: readonly string[]): Change => [
  '] as const\nexport type AuthType',
  `${names.map((name) => `  '${name}',\n`).join('')}] as const\nexport type AuthType`,
]
const recorded = (records: Readonly<Record<string, string>>): Change => {
  const last = '  upstreamInject: upstreamInjectRecord,\n'
  return [
    last,
    last +
      Object.entries(records)
        .map(([name, record]) => `  ${name}: ${record},\n`)
        .join(''),
  ]
}
const ON_SERVER = `{ ...bearerTokenRecord, runsOn: 'server' as const }`
const LACKING = ['sets', 'credentialOf', 'asks', 'init']

const RESULT = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'stand-in', version: '1' } }
const ANSWER = JSON.stringify({ jsonrpc: '2.0', id: 1, result: RESULT })

describe('a new type of external auth', { timeout: 120_000 }, () => {
  it('is refused without a record, with one that leaves something out, and without a source where it runs on routes', async () => {
    const lacking = `(({ ${LACKING.join(', ')}, ...rest }) => rest)(${ON_SERVER})`
    const types = listed('gcpSts', 'azureSts', 'ociSts')
    const said = (await compileWith(types, recorded({ azureSts: lacking, ociSts: RECORD }))).join('\n')
    expect(said).toMatch(/auth-types\.ts.*'gcpSts'/)
    for (const name of LACKING) expect(said).toMatch(new RegExp(`auth-types\\.ts.*\\b${name}\\b`))
    expect(said).toMatch(/sources\.ts.*'ociSts'/)
  })

  it('compiles with its record and source, without one where it runs elsewhere, and works in init, validate, explain and check', async () => {
    const row = /  bearerToken: .*?\),\n/s.exec(await readFile(path.join(root, SOURCES), 'utf8'))?.[0] ?? ''
    await change(SOURCES, [[row, row + row.replace('bearerToken', 'gcpSts')]])
    const records = recorded({ gcpSts: RECORD, azureSts: ON_SERVER })
    expect(await compileWith(listed('gcpSts', 'azureSts'), records)).toEqual([])
    const template = await readFile(path.join(root, 'config/init/bearerToken.yaml'), 'utf8')
    await writeFile(path.join(project, 'config/init/gcpSts.yaml'), template.replaceAll('bearerToken', 'gcpSts'))
    const folder = path.join(project, 'first')
    const config = path.join(folder, 'proxy.yaml')

    expect(await run('init', 'gcpSts', folder)).toMatchObject({ code: 0, stderr: '' })
    const shown: string[] = []
    const backend = createServer((request, response) => {
      shown.push(request.headers.authorization ?? '')
      response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
    })
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
    const { port } = backend.address() as AddressInfo
    const text = await readFile(config, 'utf8')
    await writeFile(config, text.replace('127.0.0.1:8083', `127.0.0.1:${port}`))

    expect(await run('validate', config)).toMatchObject({ code: 0 })
    await writeFile(path.join(folder, 'claims.json'), '{"sub":"ada"}')
    const explained = await run('explain', '--config', config, '--claims', path.join(folder, 'claims.json'))
    expect(explained).toMatchObject({ code: 0, stdout: expect.stringContaining('Bearer (the secret)') as string })
    const checked = await run('check', '-v', '--config', config)
    backend.close()
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('(gcpSts)') as string })
    const secret = await readFile(path.join(folder, 'secrets/backend/token'), 'utf8')
    expect(shown).toContain(`Bearer ${secret.trim()}`)
  })
})
