import path from 'node:path'
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'

const BIN = path.join(import.meta.dirname, '../../../bin/extauth.cjs')
const INFO = { name: 'stdio', version: '1.0.0' }
/** The clients' own bound is 10 MB. */
const MAX_BUFFER = 200 * 1024 * 1024

/** How the official clients start a command: with arguments of `extauth stdio`. */
export const stdioServer = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => ({
  env: { PATH: process.env['PATH'] ?? '', ...env },
  command: process.execPath,
  args: [BIN, 'stdio', '--log-level', 'warn', ...args],
  stderr: 'pipe' as const,
  maxBufferSize: MAX_BUFFER,
})

/** Common interface of both clients in these tests. */
export interface StdioClient {
  readonly client: {
    readonly list: () => Promise<string[]>
    readonly call: (
      params: { name: string; arguments?: Record<string, unknown> },
      options?: { onprogress?: (progress: { progress: number }) => void; signal?: AbortSignal; timeout?: number },
    ) => Promise<{ content?: unknown }>
  }
  readonly pid: number
  readonly close: () => Promise<void>
}

/** Client of `@modelcontextprotocol/sdk` 1.x, which shakes hands (2025-11-25). */
export async function connect1(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<StdioClient & { readonly sdk: Client1 }> {
  const sdk = new Client1(INFO, { capabilities: { sampling: {}, elicitation: {} } })
  const transport = new Stdio1(stdioServer(args, env))
  await sdk.connect(transport)
  const client: StdioClient['client'] = {
    list: async () => (await sdk.listTools()).tools.map(({ name }) => name),
    call: async (params, options) => {
      const { content } = await sdk.callTool(params, undefined, options)
      return { content }
    },
  }
  return { sdk, client, pid: transport.pid ?? 0, close: () => sdk.close() }
}

/** Client of `@modelcontextprotocol/client` 2.x in either protocol version. */
export async function connect2(
  args: readonly string[],
  mode: 'legacy' | { pin: string },
  env: Readonly<Record<string, string>> = {},
): Promise<StdioClient & { readonly sdk: Client2 }> {
  const sdk = new Client2(INFO, { versionNegotiation: { mode } })
  const transport = new Stdio2(stdioServer(args, env))
  await sdk.connect(transport)
  const client: StdioClient['client'] = {
    list: async () => (await sdk.listTools()).tools.map(({ name }) => name),
    call: (params, options) => sdk.callTool(params, options),
  }
  return { sdk, client, pid: transport.pid ?? 0, close: () => sdk.close() }
}
