import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { connectThrough } from '../../../lab/cli/lab-pages.ts'
import { EXECUTABLE, extauth, type Running } from '../../support/e2e/process.ts'
import { freePort } from '../../support/e2e/run.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8')

interface Block {
  readonly script: string
  readonly mustFail: boolean
}

/** The commands of the tour, word for word, in order. */
const TOUR: readonly Block[] = [...read('docs/tour.md').matchAll(/<!-- tour( fails)? -->\s+```sh\n(.*?)```/gs)].map(
  (match) => ({
    script: match[2] ?? '',
    mustFail: match[1] !== undefined,
  }),
)

/** The commands of docs/registry.md: first without, then with callers. */
const REGISTRY = [...read('docs/registry.md').matchAll(/```sh\n(.*?)```/gs)].map((match) => (match[1] ?? '').trim())
const REGISTRY_PORTS = [8090, 8091]

const PORTS = {
  port: 8080,
  'admin-port': 8081,
  'idp-port': 8082,
  'backend-port': 8083,
  'sts-port': 8084,
  'idp-tls-port': 8085,
  'workspace-port': 8086,
  'metadata-port': 8087,
}
/** Port on the page → port here: the same, unless something else on this machine keeps one of them. */
const ports = new Map<number, number>(Object.values(PORTS).map((port) => [port, port]))

async function choosePorts(): Promise<string[]> {
  const isAnyTaken = async () => (await Promise.all([...ports.keys()].map(isTaken))).includes(true)
  // Another program may have one for a moment.
  for (let look = 0; look < 50; look++) {
    if (!(await isAnyTaken())) return []
    await delay(200)
  }
  for (const port of ports.keys()) ports.set(port, await freePort())
  return Object.entries(PORTS).flatMap(([option, port]) => [`--${option}`, String(ports.get(port))])
}

const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(true))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(false)))
  })

const withPorts = (text: string): string =>
  text.replace(/(127\.0\.0\.1:)(\d+)/g, (_, host: string, port: string) => `${host}${ports.get(Number(port)) ?? port}`)

function bash(text: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const script = withPorts(EXECUTABLE === undefined ? text : text.replaceAll('npm run -s extauth --', EXECUTABLE))
  const env = { ...process.env, EXTAUTH_IDP_PORT: String(ports.get(8082)), EXTAUTH_PORT: String(ports.get(8080)) }
  return new Promise((resolve) => {
    execFile(
      'bash',
      ['--norc', '-uo', 'pipefail', '-c', script],
      { cwd: ROOT, env, timeout: 60_000 },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
    )
  })
}

let lab: Running

beforeAll(async () => {
  lab = extauth(['lab', ...(await choosePorts())], { cwd: ROOT })
  await vi.waitFor(() => expect(lab.stdout()).toContain('Stop with Ctrl-C'), { timeout: 25_000 })
})
afterAll(async () => {
  lab.process.kill('SIGTERM')
  expect(await lab.ended).toBe(0)
})

describe("the tour, run word for word against npm start's lab", () => {
  const needsToken = TOUR.find(({ script }) => script.startsWith('token='))?.script.split('\n')[0] ?? ''
  /** The output of each step, in order. */
  const printed: string[] = []
  /** Sets what the station with the token leaves behind in the reader's terminal. */
  let terminal = ''
  beforeAll(async () => {
    terminal = `token=${(await bash(`${needsToken}\nprintf %s "$token"`)).stdout}`
  }, 60_000)

  it('has all its stations', () => {
    expect(lab.stderr()).toBe('')
    expect(TOUR).toHaveLength(11)
    expect(needsToken).toContain('lab token')
  })

  it.each(
    TOUR.map(({ script, mustFail }, at) => [script.trim().split('\n').at(-1) ?? '', script, mustFail, at] as const),
  )(
    '%s',
    async (_name, script, mustFail, at) => {
      const { code, stdout, stderr } = await bash(script.startsWith('token=') ? script : `${terminal}\n${script}`)
      printed[at] = stdout
      const wrong = mustFail ? [] : (stdout.match(/^.*✗.*\n.*/gm) ?? [])
      expect({ failed: code !== 0, stderr, wrong }).toMatchObject({ failed: mustFail, wrong: [] })
      expect(stdout).not.toBe('')
    },
    60_000,
  )

  it('shows what it promises', () => {
    const [apiKey, challenge, bearer, exchanged, role, tests, tools, login, connected, mistake, inspector] = printed
    expect(apiKey).toContain('x-api-key')
    expect(challenge).toContain('HTTP/1.1 401')
    expect(challenge).toContain(`"authorization_servers":["http://127.0.0.1:${ports.get(8082)}"]`)
    expect(bearer).toContain('Bearer lab-bearer-token-that-is-no-secret')
    expect(exchanged).toContain('lab-backend')
    expect(exchanged).toContain('"type":"tokenExchange"')
    expect(role).toContain('AWS4-HMAC-SHA256')
    expect(role).toContain('role/lab-admin')
    expect(tests).toContain('11 passed, 0 failed')
    expect(tests).toContain('STS returned credentials')
    expect(tools?.match(/\w+_note(?=")/g)?.join(' ')).toBe('read_note write_note delete_note read_note write_note')
    expect(tools).toContain('not_allowed')
    expect(login).toContain('workspaceUser')
    expect(login).toContain('lab-backend')
    expect(connected).toMatch(
      /needs your workspace account.*http:\S+\/connect\/\S+[^]*account at workspace is connected[^]*workspaceUser: alice/,
    )
    expect(mistake).toContain('bearerToken')
    expect(mistake).toMatch(/oops\.yaml:6:3 /)
    expect(inspector).toContain('show_request')
  })
})

it('the first call of the README is that of the tour', () => {
  expect(read('README.md')).toContain(TOUR[0]?.script)
})

describe('docs/own-server.md, with the lab as server', () => {
  const PAGE = read('docs/own-server.md')
  const [init, checks, verify] = [...PAGE.matchAll(/<!-- run -->\s+```sh\n(.*?)```/gs)].map(([, text = '']) => text)
  const started = /<!-- start -->\s+```sh\n(.*?)```/s.exec(PAGE)?.[1] ?? ''

  it('generates, checks and serves a configuration', async () => {
    for (const port of [8088, 8089]) if (await isTaken(port)) ports.set(port, await freePort())
    const folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-own-server-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const here = (text = 'false') => text.replaceAll('my-proxy', path.join(folder, 'my-proxy'))
    expect(await bash(here(init))).toMatchObject({ code: 0, stderr: '' })
    const file = path.join(folder, 'my-proxy/proxy.yaml')
    writeFileSync(file, withPorts(readFileSync(file, 'utf8')))
    const checked = await bash(`set -e\n${here(checks)}`)
    expect(checked.code).toBe(0)
    expect(checked.stdout).not.toContain('✗')
    const [tool, ...args] = here(started).trim().split(' -- ')
    expect(tool).toBe('npm run -s extauth')
    const proxy = extauth(args.join(' ').split(' '), { cwd: ROOT })
    await proxy.line('listening')
    const { code, stdout } = await bash(`set -e\n${here(verify)}`)
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
    expect(code).toBe(0)
    expect(stdout).toMatch(/authorization: Bearer /i)
    expect(stdout).toContain('show_request')
  }, 120_000)
})

describe('docs/connected-accounts.md, with the lab as server', () => {
  const PAGE = read('docs/connected-accounts.md')

  it('connects the account of a local user, and keeps it over a restart', async () => {
    for (const port of [8092, 8093]) if (await isTaken(port)) ports.set(port, await freePort())
    const state = mkdtempSync(path.join(os.tmpdir(), 'extauth-connected-'))
    onTestFinished(() => rmSync(state, { recursive: true }))
    const [, script = ''] = /<!-- start -->\s+```sh\n(.*?)```/s.exec(PAGE) ?? []
    const [, call = 'false'] = /<!-- run -->\s+```sh\n(.*?)```/s.exec(PAGE) ?? []
    const [tool, args = ''] = withPorts(script).trim().split(' -- ')
    expect(tool).toBe('npm run -s extauth')
    const start = async (): Promise<Running> => {
      const proxy = extauth(args.split(' '), { cwd: ROOT, env: { XDG_STATE_HOME: state } })
      await proxy.shows('/connections\n')
      return proxy
    }
    const stop = async ({ process: child, ended }: Running): Promise<void> => {
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
    }
    const proxy = await start()
    const asked = await bash(call)
    const link = /http:[^\s"]+\/connect\/[\w-]+/.exec(asked.stdout)?.[0] ?? ''
    await connectThrough(link, { user: 'alice' }, (reason) => expect.fail(reason))
    expect((await bash(call)).stdout).toContain('show_request')
    await stop(proxy)
    const again = await start()
    expect((await bash(call)).stdout).toContain('show_request')
    await stop(again)
  }, 120_000)
})

describe('the registry as docs/registry.md starts it', () => {
  const servers = async (url: string): Promise<number> => {
    const response = await fetch(`${url}/registry/default/v0.1/servers`)
    return ((await response.json()) as { servers: unknown[] }).servers.length
  }

  it('npm run registry lists the sample servers without a login, on a free port that it logs', async () => {
    expect(REGISTRY[0]).toBe('npm run registry')
    const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    const [exec, node, bin, ...args] = scripts['registry']?.split(' ') ?? []
    expect([exec, node, bin]).toEqual(['exec', 'node', 'bin/extauth.cjs'])
    const registry = extauth(args, { cwd: ROOT })
    const { url, mode } = (await registry.line('listening')) as { url: string; mode: string }
    expect([mode, await servers(url)]).toEqual(['anonymous', 4])
    registry.process.kill('SIGTERM')
    expect(await registry.ended).toBe(0)
  }, 30_000)

  it("with the lab's identity provider, pasted as it stands, refuses without a token and serves with one", async () => {
    for (const port of REGISTRY_PORTS) if (await isTaken(port)) ports.set(port, await freePort())
    // The file as it is, but for ports of which this machine has other uses.
    const folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-readme-'))
    const moved = path.join(folder, 'registry-oauth.yaml')
    const text = readFileSync(path.join(ROOT, 'config/registry-oauth.yaml'), 'utf8')
    writeFileSync(moved, withPorts(text).replaceAll(': ./', `: ${ROOT}/config/`))
    const block = REGISTRY[1] ?? ''
    expect(block.split('\n')).toHaveLength(4)
    const pasted = block.replace('config/registry-oauth.yaml', moved).replace('/dev/null', `${folder}/registry.log`)
    try {
      const { code, stdout } = await bash(`${pasted}\nwait`)
      expect(stdout).toContain('HTTP/1.1 401')
      expect(stdout).toMatch(/www-authenticate: Bearer realm="mcp-registry", resource_metadata="http/i)
      expect(stdout).toContain('"name":"com.example/weather"')
      expect(code).toBe(0)
      expect(readFileSync(path.join(folder, 'registry.log'), 'utf8')).toContain('"msg":"stopped"')
    } finally {
      rmSync(folder, { recursive: true })
    }
  }, 60_000)
})

describe('a second lab beside it', () => {
  it('says that ports are busy, and takes others', async () => {
    const second = extauth(['lab'], { cwd: ROOT })
    onTestFinished(() => void second.process.kill('SIGTERM'))
    await expect.poll(() => second.stdout(), { timeout: 15_000 }).toContain('Stop with Ctrl-C')
    expect(second.stdout()).toMatch(/^Ports? .*8082.* (?:is|are) in use; this lab listens elsewhere\.$/m)
    const url = /^ {2}proxy +(\S+)$/m.exec(second.stdout())?.[1] ?? ''
    expect((await fetch(`${url}/nothing`)).status).toBe(404)
    const [command] = second.stdout().match(/^ {4}curl .*bearer-token.*$/gm) ?? []
    expect((await bash(command ?? 'false')).stdout).toMatch(/^POST \//)
    second.process.kill('SIGTERM')
    expect(await second.ended).toBe(0)
  }, 60_000)
})
