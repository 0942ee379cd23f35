import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { z } from 'zod'
import { connectThrough } from '../lab/cli/lab-pages.ts'
import { startLabBackend } from '../lab/index.ts'
import { Secret } from '../src/core/index.ts'
import { authConfig, proxyConfig, run } from '../test/support/e2e/run.ts'
import type { Peer } from './peers.ts'

const PACKAGE = path.join(import.meta.dirname, 'node_modules/mcp-remote')
const PROGRAM = path.join(PACKAGE, 'dist/proxy.js')
const KEY = 'key-of-the-local-user'
/** Time for the program to hear that the account was connected, in milliseconds. */
const HEAR_MS = 10_000

/** What clients of the program declare, and how they get the link. */
const CLIENTS = [
  { name: 'without elicitation', capabilities: {}, asked: /"isError":true/ },
  { name: 'with URL elicitation', capabilities: { elicitation: { url: {} } }, asked: /"code":-32042/ },
] as const

/** The bridge that most users of remote MCP servers have, in front of a route that needs an account. */
export const mcpRemotePeer = (say: (line: string) => void): Peer => ({
  name: 'mcp-remote',
  missing: () =>
    existsSync(PROGRAM) ? undefined : 'it is not installed: npm ci --prefix interop --ignore-scripts installs it',
  async run() {
    const { version } = z
      .object({ version: z.string() })
      .parse(JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8')))
    const wrong: string[] = []
    for (const client of CLIENTS) {
      const problem = await problemOf(client).catch((error: unknown) => String(error))
      if (problem !== undefined) wrong.push(`${client.name}: ${problem}`)
    }
    const what = 'the first call asks for the account, the next one uses it, clients with and without URL elicitation'
    say(`mcp-remote ${version} ran: ${what}: ${wrong.length === 0 ? 'right' : wrong.join('; ')}`)
    return wrong.length === 0
  },
})

async function problemOf({ capabilities, asked }: (typeof CLIENTS)[number]): Promise<string | undefined> {
  await using opened = new AsyncDisposableStack()
  const home = mkdtempSync(path.join(tmpdir(), 'extauth-mcp-remote-'))
  opened.defer(() => rmSync(home, { recursive: true, force: true }))
  const url = await startProxy(opened)
  const client = opened.adopt(new Client({ name: 'interop', version: '1' }, { capabilities }), (one) => one.close())
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, MCP_REMOTE_CONFIG_DIR: home }
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [PROGRAM, url], env, stderr: 'ignore' }),
  )
  const call = async (): Promise<string> => {
    try {
      return JSON.stringify(await client.callTool({ name: 'show_request' }))
    } catch (error) {
      const { code, data } = Object(error) as { code?: unknown; data?: unknown }
      return JSON.stringify({ code, data })
    }
  }
  const { tools } = await client.listTools()
  if (tools.map(({ name }) => name).join() !== 'connect_account') return 'lists other tools before the connection'
  const first = await call()
  const link = /http:[^\s"]+\/connect\/[\w-]+/.exec(first)?.[0]
  if (!asked.test(first) || link === undefined) return `is not asked for the account: ${first.slice(0, 200)}`
  const changed = Promise.withResolvers<void>()
  client.fallbackNotificationHandler = ({ method }) => {
    if (method === 'notifications/tools/list_changed') changed.resolve()
    return Promise.resolve()
  }
  await connectThrough(link, { user: '', key: KEY }, (reason) => {
    throw new Error(reason)
  })
  await Promise.race([changed.promise, delay(HEAR_MS, undefined, { ref: false })])
  const second = await call()
  return second.includes(`Bearer ${KEY}`) ? undefined : `does not use the account: ${second.slice(0, 200)}`
}

/** A proxy whose local user connects an account with a key, in front of a backend that accepts only that key. */
async function startProxy(opened: AsyncDisposableStack): Promise<string> {
  const mounts = { '/mcp': { kind: 'bearer', token: new Secret(KEY) } } as const
  const backend = opened.adopt(await startLabBackend({ port: 0, clock: Date, mounts }), (one) => one.close())
  const files = {
    'own.json': authConfig('own', { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      connections: { singleUser: true, providers: [{ name: 'notes', type: 'secret', secret: { label: 'Key' } }] },
      routes: [{ name: 'mcp', path: '/mcp', target: `${backend.url}/mcp`, externalAuthConfigRef: { name: 'own' } }],
    }),
  }
  const proxy = opened.adopt(await run(files), (one) => one.close())
  return `${proxy.url}/mcp`
}
