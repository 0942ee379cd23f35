import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { startLabBackend } from '../lab/index.ts'
import { extauth } from '../test/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../test/e2e/run.ts'
import { CLIENTS, told } from './gateways/traffic.ts'
import type { Peer } from './peers-run.ts'

const SOURCES = path.join(import.meta.dirname, 'go-sdk')
const SECRET = 'what-the-server-wants'
/** Downloading and compiling, on a busy machine. */
const BUILD_MS = 300_000
const ANSWER_MS = 90_000

const go = (args: readonly string[], timeout: number) =>
  spawnSync('go', args, { cwd: SOURCES, encoding: 'utf8', timeout, env: { ...process.env, GOTOOLCHAIN: 'local' } })

/** The official SDK for Go: its client in front of the proxy, its server behind it, and both with those for TypeScript. */
export const goPeer = (say: (line: string) => void): Peer => ({
  name: 'MCP SDK for Go',
  missing() {
    if (go(['version'], 10_000).status !== 0) return 'Go is not installed'
    return go(['mod', 'download'], BUILD_MS).status === 0 ? undefined : 'a proxy of Go modules can not be reached'
  },
  async run() {
    const directory = mkdtempSync(path.join(tmpdir(), 'extauth-peers-go-'))
    const ends: (() => unknown)[] = [() => rmSync(directory, { recursive: true, force: true })]
    try {
      const bin = path.join(directory, 'peers')
      const built = go(['build', '-mod=readonly', '-o', bin, '.'], BUILD_MS)
      if (built.status !== 0) throw new Error(`go build did not work: ${built.stderr.slice(-500)}`)
      const program = await startProgram(bin)
      ends.unshift(program.close)
      const { routes, close } = await startProxy(program.url)
      ends.unshift(close)
      const wrong: string[] = []
      let conversations = 0
      const hear = (said: string | undefined): void => {
        conversations++
        if (said !== undefined && said !== '') wrong.push(said)
      }
      for (const { name, url, shows } of routes) {
        for (let time = 0; time < 3; time++) hear(await program.converse({ name, url, token: 'of-the-caller', shows }))
        if (shows === '') continue
        for (const [client, talk] of Object.entries(CLIENTS)) {
          const said = await told(talk(new URL(url)))
          hear(said === undefined ? undefined : `${client} to ${name} ${said}`)
        }
      }
      const verdict = wrong.length === 0 ? 'right' : wrong.slice(0, 5).join('; ')
      say(
        `go-sdk ${program.version} ran: ${conversations} conversations, before and behind, with and without sessions: ${verdict}`,
      )
      return wrong.length === 0
    } finally {
      for (const end of ends) await end()
    }
  },
})

interface Conversation {
  readonly name: string
  readonly url: string
  readonly token: string
  readonly shows: string
}

async function startProgram(bin: string) {
  const child: ChildProcess = spawn(bin, [], { stdio: ['pipe', 'pipe', 'inherit'] })
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error('the Go program has no standard streams')
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<unknown> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), ANSWER_MS)
    const { value, done = false } = await lines.next()
    clearTimeout(timer)
    if (done) throw new Error('the Go program has ended')
    return JSON.parse(String(value)) as unknown
  }
  const { url, version } = z.object({ url: z.string(), version: z.string() }).parse(await next())
  return {
    url,
    version,
    /** What went wrong; empty where nothing did. */
    async converse(wanted: Conversation): Promise<string> {
      stdin.write(`${JSON.stringify(wanted)}\n`)
      return z.object({ wrong: z.string() }).parse(await next()).wrong
    },
    close: () => void child.kill('SIGKILL'),
  }
}

/** The program with a route to the lab's MCP server, and one to each of the Go program's with a credential of its own. */
async function startProxy(goUrl: string) {
  const lab = await startLabBackend({
    port: 0,
    mounts: { '/mcp': { kind: 'none' } },
    clock: { now: () => Date.now() },
    keep: 1,
  })
  const servers = [
    { name: 'the lab', path: '/lab', target: `${new URL(lab.url).origin}/mcp`, auth: 'none', shows: '' },
    ...['sessions', 'stateless'].map((kind) => ({
      name: `the Go server (${kind})`,
      path: `/${kind}`,
      target: `${goUrl}/${kind}`,
      auth: 'static',
      shows: `Bearer ${SECRET}`,
    })),
  ]
  const routes = servers.map(({ path: at, target, auth }) => ({
    name: at.slice(1),
    path: at,
    target,
    externalAuthConfigRef: { name: auth },
  }))
  const bearerToken = { tokenSecretRef: { name: 'server', key: 'token' } }
  const config = await configFolder({
    'none.json': authConfig('none', { type: 'unauthenticated' }),
    'static.json': authConfig('static', { type: 'bearerToken', bearerToken }),
    'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes }),
    'secrets/server/token': SECRET,
  })
  const args = ['proxy', '--config', config.directory, '--secrets-dir', path.join(config.directory, 'secrets')]
  const running = extauth([...args, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--log-level', 'info'])
  const { url } = z.object({ url: z.string() }).parse(await running.line('listening'))
  return {
    routes: servers.map(({ name, path: at, shows }) => ({ name, url: `${url}${at}`, shows })),
    close: async (): Promise<void> => {
      running.process.kill('SIGTERM')
      await running.ended
      await config.remove()
      await lab.close()
    },
  }
}
