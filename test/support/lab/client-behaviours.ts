import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { expect, test, vi } from 'vitest'
import type { LabBackend } from '../../../lab/index.ts'

/** An MCP address to try the official clients on, and the backend that is behind it. */
export interface ClientTarget {
  readonly url: string
  /** Headers of every request, such as the client's token. */
  readonly headers?: Readonly<Record<string, string>>
  readonly backend: LabBackend
}

const INFO = { name: 'behaviours', version: '1.0.0' }

interface ToolAnswer {
  readonly content?: readonly object[]
}

const textOf = (answer: ToolAnswer): string => {
  const [first] = (answer.content ?? []) as readonly { readonly text?: string }[]
  return first?.text ?? ''
}

const init = ({ headers }: ClientTarget) => ({ requestInit: { headers: { ...headers } } })

/** Client of the package `@modelcontextprotocol/sdk` 1.x, which speaks the 2025-11-25 revision. */
async function connect1(target: ClientTarget) {
  const client = new Client1(INFO)
  const transport = new Transport1(new URL(target.url), init(target))
  await client.connect(transport)
  return { client, transport }
}

/** Client of the package `@modelcontextprotocol/client` 2.x in either protocol version. */
async function connect2(target: ClientTarget, mode: 'legacy' | { pin: string }) {
  const client = new Client2(INFO, { versionNegotiation: { mode } })
  const transport = new Transport2(new URL(target.url), init(target))
  await client.connect(transport)
  return { client, transport }
}

/** Common interface of both clients in these tests. */
type Call = (
  params: { name: string; arguments?: Record<string, unknown> },
  options?: { onprogress?: (progress: { progress: number }) => void; signal?: AbortSignal },
) => Promise<ToolAnswer>

export interface Connected {
  readonly list: () => Promise<{ tools: { name: string }[] }>
  readonly call: Call
  readonly close: () => Promise<void>
}

/** The official clients, by package and revision. */
export const MODES: Readonly<Record<string, (target: ClientTarget) => Promise<Connected>>> = {
  'sdk 1.x (2025-11-25)': async (target) => {
    const { client } = await connect1(target)
    return {
      list: () => client.listTools(),
      call: (params, options) => client.callTool(params, undefined, options) as Promise<ToolAnswer>,
      close: () => client.close(),
    }
  },
  'client 2.x (2025-11-25)': async (target) => connected2(await connect2(target, 'legacy')),
  'client 2.x (2026-07-28)': async (target) => connected2(await connect2(target, { pin: '2026-07-28' })),
}

function connected2({ client }: Awaited<ReturnType<typeof connect2>>): Connected {
  return {
    list: () => client.listTools(),
    call: (params, options) => client.callTool(params, options),
    close: () => client.close(),
  }
}

/** Registers that every official client reaches a target, and gets an answer as it happens. */
export function testBasics(targetOf: () => ClientTarget): void {
  test.each(Object.keys(MODES))('%s lists and calls tools', async (mode) => {
    const target = targetOf()
    const client = await MODES[mode]?.(target)
    const { tools } = (await client?.list()) ?? { tools: [] }
    expect(tools.map(({ name }) => name)).toContain('show_request')
    const answer = await client?.call({ name: 'show_request' })
    expect(textOf(answer ?? {})).toMatch(/^POST \/[^]*\nhost: /i)
    const seen = (answer as { structuredContent?: unknown }).structuredContent as {
      request: string
      headers: string[]
      body: string
    }
    expect(seen.request).toMatch(/^POST \//)
    expect(seen.headers.join('\n')).toMatch(/^host: 127\.0\.0\.1:\d+$/im)
    expect(JSON.parse(seen.body)).toMatchObject({ method: 'tools/call', params: { name: 'show_request' } })
    await client?.close()
  })

  test.each(Object.keys(MODES))('%s gets progress as it happens, before the result', async (mode) => {
    const client = await MODES[mode]?.(targetOf())
    const seen: { progress: number; atMs: number }[] = []
    const onprogress = ({ progress }: { progress: number }) => void seen.push({ progress, atMs: performance.now() })
    await client?.call({ name: 'stream_progress', arguments: { steps: 4, intervalMs: 60 } }, { onprogress })
    const endMs = performance.now()
    expect(seen.map(({ progress }) => progress)).toEqual([1, 2, 3, 4])
    // Three steps of 60 ms lie between the first event and the last: a buffered answer would show them all at once.
    expect((seen.at(-1)?.atMs ?? 0) - (seen[0]?.atMs ?? 0)).toBeGreaterThan(100)
    expect(endMs - (seen[0]?.atMs ?? 0)).toBeGreaterThan(100)
    await client?.close()
  })
}

/** Registers what every official client must be able to do at a target; the same direct and through a proxy. */
export function testEveryClient(targetOf: () => ClientTarget): void {
  testBasics(targetOf)

  test.each(Object.keys(MODES))('a cancellation by %s reaches the server', async (mode) => {
    const target = targetOf()
    const client = await MODES[mode]?.(target)
    const label = `cancel ${mode} ${Math.random()}`
    const cancel = new AbortController()
    const call = client?.call({ name: 'wait', arguments: { ms: 30_000, label } }, { signal: cancel.signal })
    const outcome = () => target.backend.waits.find((wait) => wait.label === label)?.outcome
    await vi.waitFor(() => expect(outcome()).toBe('waiting'), 5000)
    cancel.abort('not needed any more')
    await expect(call).rejects.toThrow('not needed any more')
    await vi.waitFor(() => expect(outcome()).toBe('cancelled'), 5000)
    await client?.close()
  })

  test.each(Object.keys(MODES))('%s gets a result of 2 MiB whole', async (mode) => {
    const client = await MODES[mode]?.(targetOf())
    const bytes = 2 * 1024 * 1024
    const answer = await client?.call({ name: 'large_result', arguments: { bytes } })
    expect(textOf(answer ?? {})).toHaveLength(bytes)
    await client?.close()
  })

  testSessions(targetOf)
  testSubscriptions(targetOf)
}

/** Sessions of the 2025-11-25 revision: GET stream, resumption, DELETE. */
function testSessions(targetOf: () => ClientTarget): void {
  test('a session has a GET stream that carries notifications of the server', async () => {
    const { client, transport } = await connect1(targetOf())
    expect(transport.sessionId).toMatch(/^[\x21-\x7e]+$/)
    let changed = 0
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changed++)
    await vi.waitFor(async () => {
      // The GET stream opens in the background; earlier notifications are lost.
      await client.callTool({ name: 'test_trigger_tool_change' })
      expect(changed).toBeGreaterThan(0)
    }, 5000)
    await client.close()
  })

  test('a stream that the server closes is resumed where it ended', async () => {
    const { client } = await connect1(targetOf())
    const answer = await client.callTool({ name: 'test_reconnection' })
    expect(textOf(answer as ToolAnswer)).toBe('Reconnection test completed successfully')
    await client.close()
  })

  test('DELETE ends a session', async () => {
    const target = targetOf()
    const { client, transport } = await connect1(target)
    const id = transport.sessionId ?? ''
    const isOpen = () => target.backend.sessions().some((open) => id.startsWith(open))
    expect(isOpen()).toBe(true)
    await transport.terminateSession()
    expect(isOpen()).toBe(false)
    const gone = await fetch(target.url, {
      method: 'POST',
      headers: {
        ...target.headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': id,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    expect(gone.status).toBe(404)
    await client.close()
  })
}

/** `subscriptions/listen` of the 2026-07-28 revision. */
function testSubscriptions(targetOf: () => ClientTarget): void {
  test('subscriptions/listen carries the changes that were asked for', async () => {
    const { client, transport } = await connect2(targetOf(), { pin: '2026-07-28' })
    expect(transport.sessionId).toBeUndefined()
    const heard: string[] = []
    client.setNotificationHandler('notifications/tools/list_changed', () => void heard.push('tools'))
    client.setNotificationHandler('notifications/prompts/list_changed', () => void heard.push('prompts'))
    const subscription = await client.listen({ toolsListChanged: true })
    expect(subscription.honoredFilter).toMatchObject({ toolsListChanged: true })
    await client.callTool({ name: 'test_trigger_prompt_change' })
    await client.callTool({ name: 'test_trigger_tool_change' })
    await vi.waitFor(() => expect(heard).toEqual(['tools']), 5000)
    await subscription.close()
    expect(await subscription.closed).toBe('local')
    await client.close()
  })
}
