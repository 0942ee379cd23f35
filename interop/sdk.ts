import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { startLabBackend } from '../lab/index.ts'
import { extauth } from '../test/support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../test/support/e2e/run.ts'
import { readingsOf, readingText } from './readings.ts'
import { CLIENTS, problemOf } from './gateways/traffic.ts'
import type { Peer } from './peers.ts'

const SECRET = 'what-the-server-wants'
const ANSWER_MS = 90_000
/** Conversations of its client at each place. */
const TIMES = 3

/** A server of the program, by its path. */
interface Server {
  readonly kind: 'sessions' | 'stateless'
  /** Whether its tools tell of their progress. */
  readonly tellsProgress: boolean
}

/**
 * An official SDK in another language, in a test program. It serves MCP at `/sessions` and `/stateless`, prints a line of
 * JSON that says where (`url`) and with which `version`, and answers each line that is a `Conversation` with what went `wrong`.
 */
export interface Sdk {
  readonly language: string
  readonly servers: readonly Server[]
  /** Path of a server whose tools return what was parsed of their call. */
  readonly echo?: string
  missing(): string | undefined
  /** The command that starts the program, which may be made in this folder. Throws where that does not work. */
  build(directory: string): readonly string[]
}

/** A task of the program's client. */
interface Conversation {
  readonly name: string
  readonly url: string
  readonly token: string
  /** Required credential at the server; empty if it does not report one. */
  readonly shows: string
  readonly progress: boolean
  readonly sessions: boolean
}

type Route = Omit<Conversation, 'token'>

/** The SDK's client in front of the proxy, its servers behind it, and those with the clients for TypeScript. */
export const sdkPeer = (say: (line: string) => void, sdk: Sdk): Peer => ({
  name: `MCP SDK for ${sdk.language}`,
  missing: () => sdk.missing(),
  async run() {
    const directory = mkdtempSync(path.join(tmpdir(), 'extauth-peers-sdk-'))
    const ends: (() => unknown)[] = [() => rmSync(directory, { recursive: true, force: true })]
    try {
      const program = await startProgram(sdk.language, sdk.build(directory))
      ends.unshift(program.close)
      const readings = sdk.echo === undefined ? undefined : await readingsOf(`${program.url}${sdk.echo}`)
      const { routes, close } = await startProxy(sdk, program.url)
      ends.unshift(close)
      const wrong: string[] = [...(readings?.wrong ?? [])]
      let conversations = 0
      const hear = (said: string | undefined): void => {
        conversations++
        if (said !== undefined && said !== '') wrong.push(said)
      }
      for (const route of routes) {
        for (let time = 0; time < TIMES; time++) hear(await program.converse({ ...route, token: 'of-the-caller' }))
        if (route.shows === '') continue
        for (const [client, talk] of Object.entries(CLIENTS)) {
          const said = await problemOf(talk(new URL(route.url), route.progress))
          hear(said === undefined ? undefined : `${client} to ${route.name} ${said}`)
        }
      }
      const verdict = wrong.length === 0 ? 'right' : wrong.slice(0, 5).join('; ')
      const parsed = readings === undefined ? '' : `; ${readingText(readings)}`
      const what = `${conversations} conversations, before and behind, with and without sessions${parsed}`
      say(`the SDK for ${sdk.language}, ${program.version}, ran: ${what}: ${verdict}`)
      return wrong.length === 0
    } finally {
      for (const end of ends) await end()
    }
  },
})

async function startProgram(language: string, [command = '', ...args]: readonly string[]) {
  const child: ChildProcess = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error(`the program in ${language} has no standard streams`)
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<unknown> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), ANSWER_MS)
    const { value, done = false } = await lines.next()
    clearTimeout(timer)
    if (done) throw new Error(`the program in ${language} has ended`)
    return JSON.parse(String(value)) as unknown
  }
  const { url, version } = z.object({ url: z.string(), version: z.string() }).parse(await next())
  return {
    url,
    version,
    /** The problem; empty without one. */
    async converse(wanted: Conversation): Promise<string> {
      stdin.write(`${JSON.stringify(wanted)}\n`)
      return z.object({ wrong: z.string() }).parse(await next()).wrong
    },
    close: () => void child.kill('SIGKILL'),
  }
}

/** The program with a route to the lab's MCP server, and one to each of the SDK's with a credential of its own. */
async function startProxy({ language, servers }: Sdk, url: string) {
  const lab = await startLabBackend({
    port: 0,
    mounts: { '/mcp': { kind: 'none' } },
    clock: { now: () => Date.now() },
    keep: 1,
  })
  const places = [
    {
      name: 'the lab',
      path: '/lab',
      target: `${new URL(lab.url).origin}/mcp`,
      auth: 'none',
      shows: '',
      progress: true,
      sessions: false,
    },
    ...servers.map(({ kind, tellsProgress }) => ({
      name: `the ${language} server (${kind})`,
      path: `/${kind}`,
      target: `${url}/${kind}`,
      auth: 'static',
      shows: `Bearer ${SECRET}`,
      progress: tellsProgress,
      sessions: kind === 'sessions',
    })),
  ]
  const bearerToken = { tokenSecretRef: { name: 'server', key: 'token' } }
  const config = await configFolder({
    'none.json': authConfig('none', { type: 'unauthenticated' }),
    'static.json': authConfig('static', { type: 'bearerToken', bearerToken }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: places.map(({ path: at, target, auth }) => ({
        name: at.slice(1),
        path: at,
        target,
        externalAuthConfigRef: { name: auth },
      })),
    }),
    'secrets/server/token': SECRET,
  })
  const args = ['proxy', '--config', config.directory, '--secrets-dir', path.join(config.directory, 'secrets')]
  const running = extauth([...args, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--log-level', 'info'])
  const listening = z.object({ url: z.string() }).parse(await running.line('listening'))
  return {
    routes: places.map(({ name, path: at, shows, progress, sessions }): Route => ({
      name,
      url: `${listening.url}${at}`,
      shows,
      progress,
      sessions,
    })),
    close: async (): Promise<void> => {
      running.process.kill('SIGTERM')
      await running.ended
      await config.remove()
      await lab.close()
    },
  }
}
