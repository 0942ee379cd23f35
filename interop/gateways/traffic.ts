import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { z } from 'zod'

const INFO = { name: 'peers', version: '1.0.0' }
const LARGE_BYTES = 1024 * 1024
const LIMIT_MS = 60_000
const STEPS = { name: 'stream_progress', arguments: { steps: 4, intervalMs: 100 } }
const LARGE = { name: 'large_result', arguments: { bytes: LARGE_BYTES } }

const TEXT = z.object({ content: z.array(z.object({ text: z.string() })) })
const textOf = (result: unknown): string => TEXT.parse(result).content[0]?.text ?? ''

/** Operations of an official client, by the API of its release. */
interface Talker {
  tools(): Promise<readonly string[]>
  call(request: { name: string; arguments: object }, onProgress?: (progress: number) => void): Promise<unknown>
  close(): Promise<void>
}

/** Initializes, lists, calls, streams (unless there is no progress) and ends. Returns the problem, or undefined. */
async function converse(talker: Talker, hasProgress: boolean): Promise<string | undefined> {
  if (!(await talker.tools()).includes('show_request')) return 'lists no tools'
  const shown = textOf(await talker.call({ name: 'show_request', arguments: {} }))
  if (!shown.startsWith('POST /')) return 'calls no tool'
  if (hasProgress) {
    const progress: number[] = []
    await talker.call(STEPS, (value) => progress.push(value))
    // The client drops notifications that came in one piece with the result, so that the last ones may be missing.
    if (progress.length === 0 || !'1,2,3,4'.startsWith(progress.join())) return `gets progress ${progress.join()}`
  }
  if (textOf(await talker.call(LARGE)).length !== LARGE_BYTES) return 'gets no large result'
  await talker.close()
  return undefined
}

/** The client of release 1 and its sessions. */
export async function overSdk1(
  transport: Transport1 | StdioClientTransport,
  hasProgress = true,
): Promise<string | undefined> {
  const client = new Client1(INFO)
  await client.connect(transport)
  const talker: Talker = {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: (request, onProgress) =>
      client.callTool(
        { ...request, arguments: { ...request.arguments } },
        undefined,
        onProgress === undefined ? {} : { onprogress: ({ progress }) => onProgress(progress) },
      ),
    close: async () => {
      if ('terminateSession' in transport) await transport.terminateSession()
      await client.close()
    },
  }
  return converse(talker, hasProgress)
}

/** The client of release 2, with whichever revision both sides know best. */
async function overSdk2(url: URL, hasProgress = true): Promise<string | undefined> {
  const client = new Client2(INFO)
  await client.connect(new Transport2(url))
  const talker: Talker = {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: (request, onProgress) =>
      client.callTool(
        { ...request, arguments: { ...request.arguments } },
        onProgress === undefined ? {} : { onprogress: ({ progress }) => onProgress(progress) },
      ),
    close: () => client.close(),
  }
  return converse(talker, hasProgress)
}

export const CLIENTS = {
  'SDK 1': (url: URL, hasProgress = true) => overSdk1(new Transport1(url), hasProgress),
  'SDK 2': overSdk2,
}

/** The problem of a conversation, truncated; undefined without one. */
export async function problemOf(talking: Promise<string | undefined>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => (timer = setTimeout(resolve, LIMIT_MS, 'does not end')))
  try {
    return await Promise.race([talking, late])
  } catch (error) {
    return `fails: ${error instanceof Error ? error.message.slice(0, 200) : String(error)}`
  } finally {
    clearTimeout(timer)
  }
}

/** A command that carries MCP between its standard streams and a server, such as mcp-remote. */
export const overCommand = (command: string, args: readonly string[], env: Readonly<Record<string, string>>) =>
  problemOf(overSdk1(new StdioClientTransport({ command, args: [...args], env: { ...env }, stderr: 'ignore' })))
