import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { startUnconnected, type Unconnected } from '../../support/elicitation.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const LINK = 'https://mcp.example/connect/ticket-1'
const URL_CAPABLE = { capabilities: { elicitation: { url: {} } } }
const INFO = { name: 'official', version: '1.0.0' }

/** A client of the 2.x package; `answer` is what its user does with a link. */
async function modern(proxy: Unconnected, answer?: (url: string) => 'accept' | 'decline' | 'cancel') {
  const client = sockets.closing(
    new Client(INFO, {
      ...(answer === undefined ? {} : URL_CAPABLE),
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    }),
  )
  if (answer !== undefined)
    client.setRequestHandler('elicitation/create', ({ params }) => ({
      action: answer('url' in params ? params.url : ''),
    }))
  await client.connect(new StreamableHTTPClientTransport(new URL(proxy.url)))
  return client
}

/** A client of the 1.x package. */
async function legacy(proxy: Unconnected, options: object = {}) {
  const client = sockets.closing(new OldClient(INFO, options))
  const transport = new OldTransport(new URL(proxy.url))
  await client.connect(transport)
  return client
}

const textOf = (result: object): string => (result as { content: { text: string }[] }).content[0]?.text ?? ''

describe('a client of MCP 2026-07-28', () => {
  it('gets the link as an input request, and the retry reaches the backend without it', async () => {
    const proxy = await startUnconnected(sockets)
    const opened: string[] = []
    const client = await modern(proxy, (url) => {
      opened.push(url)
      proxy.links.connect()
      return 'accept'
    })

    const result = await client.callTool({ name: 'show_request', arguments: { id: 12345678901234567n.toString() } })

    expect(opened).toEqual([LINK])
    expect(result.isError).not.toBe(true)
    const seen = textOf(result)
    expect(seen).toContain('show_request')
    expect(seen).not.toContain('requestState')
    expect(seen).not.toContain('inputResponses')
    expect(seen).not.toContain('extauth-connect')
  })

  it('is asked three times for one request, then gets the link as text', async () => {
    const proxy = await startUnconnected(sockets)
    let asked = 0
    const client = await modern(proxy, () => {
      asked++
      return 'accept'
    })

    const result = await client.callTool({ name: 'show_request' })

    expect(asked).toBe(3)
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain(LINK)
  })

  it.each(['decline', 'cancel'] as const)('is not asked again after %s', async (action) => {
    const proxy = await startUnconnected(sockets)
    let asked = 0
    const client = await modern(proxy, () => {
      asked++
      return action
    })

    const result = await client.callTool({ name: 'show_request' })

    expect(asked).toBe(1)
    expect(textOf(result)).toContain('declined')
  })

  it('without URL elicitation gets a tool result with the whole link', async () => {
    const proxy = await startUnconnected(sockets)
    const client = await modern(proxy)

    const result = await client.callTool({ name: 'anything' })

    expect(result.isError).toBe(true)
    expect(textOf(result)).toBe(
      `This needs your GitHub account, which is not connected yet. Open this link in a browser, valid for 10 minutes and for you only: ${LINK} Then try again.`,
    )
  })

  it('sees the placeholder server, and a notification when the account is connected', async () => {
    const proxy = await startUnconnected(sockets)
    const client = await modern(proxy)
    expect(client.getServerVersion()).toMatchObject({ name: 'mcp-extauth' })
    expect(client.getInstructions()).toContain('not connected')
    const { tools } = await client.listTools()
    expect(tools).toMatchObject([{ name: 'connect_account', annotations: { readOnlyHint: true } }])
    const changed = new Promise<void>((resolve) =>
      client.setNotificationHandler('notifications/tools/list_changed', () => resolve()),
    )
    const subscription = await client.listen({ toolsListChanged: true })

    proxy.links.connect()

    await changed
    expect(await subscription.closed).toBe('graceful')
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('show_request')
    await expect.poll(() => proxy.links.listeners).toBe(0)
  })
})

describe('a client of MCP 2025-11-25', () => {
  it('with URL elicitation gets error -32042 with the link', async () => {
    const proxy = await startUnconnected(sockets)
    const client = await legacy(proxy, URL_CAPABLE)

    const error: unknown = await client.callTool({ name: 'show_request' }).catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(UrlElicitationRequiredError)
    expect((error as UrlElicitationRequiredError).elicitations).toEqual([
      {
        mode: 'url',
        elicitationId: 'prompt-1',
        url: LINK,
        message: 'This needs your GitHub account, which is not connected yet.',
      },
    ])
  })

  it.each([{}, { capabilities: { elicitation: {} } }])('without it gets a tool result (%j)', async (options) => {
    const proxy = await startUnconnected(sockets)
    const client = await legacy(proxy, options)

    const result = await client.callTool({ name: 'show_request' })

    expect(result['isError']).toBe(true)
    expect(textOf(result)).toContain(LINK)
  })

  it('sees the placeholder server, is notified on its stream, and must start a new session then', async () => {
    const proxy = await startUnconnected(sockets)
    const client = await legacy(proxy, URL_CAPABLE)
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['connect_account'])
    const { ElicitationCompleteNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js')
    const completed = new Promise((resolve) =>
      client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => resolve(params)),
    )
    await expect.poll(() => proxy.links.listeners).toBe(1)

    proxy.links.connect()

    expect(await completed).toEqual({ elicitationId: 'prompt-1' })
    await expect(client.listTools()).rejects.toMatchObject({ code: 404 })
    const again = await legacy(proxy, URL_CAPABLE)
    expect((await again.listTools()).tools.map(({ name }) => name)).toContain('show_request')
  })

  it('keeps its capability with the session when the connection ends later', async () => {
    const proxy = await startUnconnected(sockets)
    proxy.links.connect()
    const client = await legacy(proxy, URL_CAPABLE)
    expect((await client.callTool({ name: 'show_request' }))['isError']).not.toBe(true)
    proxy.links.disconnect()
    proxy.state.problem = 'ended'

    const error: unknown = await client.callTool({ name: 'show_request' }).catch((thrown: unknown) => thrown)

    expect((error as UrlElicitationRequiredError).elicitations[0]?.message).toBe(
      'GitHub ended this connection; connect your account again.',
    )
  })

  it('learns on the stream of its session at the backend that the account was connected again', async () => {
    const proxy = await startUnconnected(sockets)
    proxy.links.connect()
    const client = await legacy(proxy, URL_CAPABLE)
    const { ElicitationCompleteNotificationSchema, ToolListChangedNotificationSchema } =
      await import('@modelcontextprotocol/sdk/types.js')
    const notified: unknown[] = []
    client.setNotificationHandler(
      ElicitationCompleteNotificationSchema,
      ({ params }) => void notified.push(params.elicitationId),
    )
    client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => void notified.push(method))
    await expect.poll(() => proxy.links.listeners).toBe(1)
    proxy.links.disconnect()
    await expect(client.callTool({ name: 'show_request' })).rejects.toBeInstanceOf(UrlElicitationRequiredError)

    proxy.links.connect()

    await expect.poll(() => notified).toEqual(['prompt-1', 'notifications/tools/list_changed'])
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('show_request')
    expect(proxy.backend.requests().filter(({ method }) => method === 'GET')).toHaveLength(1)
    await client.close()
    await expect.poll(() => proxy.links.listeners).toBe(0)
  })

  it('that opens no URLs is told on that stream only that its tools may have changed', async () => {
    const proxy = await startUnconnected(sockets)
    proxy.links.connect()
    const client = await legacy(proxy)
    const notified: string[] = []
    client.fallbackNotificationHandler = ({ method }) => Promise.resolve(void notified.push(method))
    await expect.poll(() => proxy.links.listeners).toBe(1)

    proxy.links.connect()

    await expect.poll(() => notified).toEqual(['notifications/tools/list_changed'])
  })

  it('can end a session of the placeholder', async () => {
    const proxy = await startUnconnected(sockets)
    const client = sockets.closing(new OldClient(INFO))
    const transport = new OldTransport(new URL(proxy.url))
    await client.connect(transport)

    await expect(transport.terminateSession()).resolves.toBeUndefined()
  })
})
