import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  type Arrived,
  openBridge,
  result,
  startServer,
  type TestBridge,
  type TestServer,
} from '../../support/bridge/harness.ts'

let server: TestServer
let bridge: TestBridge

afterEach(async () => {
  await bridge.close()
  await server.close()
})

async function open(answer: (arrived: Arrived) => void): Promise<void> {
  server = await startServer(answer)
  bridge = openBridge(server.url)
  bridge.read()
}

const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }
const call = (id: number | string, method: string, params: object = {}) => ({
  id,
  method,
  params: { ...params, _meta },
})
const standard = ({ headers }: Arrived) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('mcp-')))

describe('stateless requests (2026-07-28)', () => {
  it.each([
    ['tools/list', {}, {}],
    ['tools/call', { name: 'add' }, { 'mcp-name': 'add' }],
    ['prompts/get', { name: 'Grüße' }, { 'mcp-name': '=?base64?R3LDvMOfZQ==?=' }],
    ['resources/read', { uri: 'test://x y' }, { 'mcp-name': 'test://x y' }],
    ['resources/read', { uri: ' x ' }, { 'mcp-name': '=?base64?IHgg?=' }],
    ['tools/call', { name: '=?base64?eA==?=' }, { 'mcp-name': '=?base64?PT9iYXNlNjQ/ZUE9PT89?=' }],
    ['tasks/get', { taskId: 't1' }, { 'mcp-name': 't1' }],
    ['tools/call', { name: 7 }, {}],
  ])('have the headers that the revision asks for: %s %j', async (method, params, expected) => {
    await open((arrived) => arrived.json(200, result(arrived.body.id)))
    bridge.send(call(1, method, params))
    await bridge.answer(1)
    const [arrived] = server.all
    expect(arrived && standard(arrived)).toEqual({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...expected,
    })
    await bridge.close()
    // There is no session to be ended, and no stream to be opened.
    expect(server.all).toHaveLength(1)
  })

  it('repeat parameters in headers as the tools that were listed ask for it', async () => {
    const inputSchema = {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        count: { type: 'integer', 'x-mcp-header': 'Count' },
        deep: { type: 'object', properties: { dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run' } } },
        bad: { type: 'string', 'x-mcp-header': 'no token' },
        ratio: { type: 'number', 'x-mcp-header': 'Ratio' },
      },
    }
    await open(({ body, json }) =>
      json(200, result(body.id, body.method === 'tools/list' ? { tools: [{ name: 'a', inputSchema }, null, {}] } : {})),
    )
    const given = { region: 'eü', count: 3, deep: { dry: false }, bad: 'x', ratio: 0.5 }
    bridge.send(call(1, 'tools/call', { name: 'a', arguments: given }), call(2, 'tools/list'))
    await Promise.all([bridge.answer(1), bridge.answer(2)])
    bridge.send(call(3, 'tools/call', { name: 'a', arguments: given }))
    bridge.send(call(4, 'tools/call', { name: 'a', arguments: { region: null } }))
    await Promise.all([bridge.answer(3), bridge.answer(4)])
    const [before, after, without] = server.by('tools/call').map(standard)
    expect(Object.keys(before ?? {}).filter((name) => name.startsWith('mcp-param-'))).toEqual([])
    expect(after).toMatchObject({
      'mcp-param-region': '=?base64?ZcO8?=',
      'mcp-param-count': '3',
      'mcp-param-dry-run': 'false',
    })
    expect(Object.keys(after ?? {})).toHaveLength(6)
    expect(Object.keys(without ?? {})).toHaveLength(3)
  })

  it('learn what a tool wants in headers when the server misses it', async () => {
    const tool = { name: 'a', inputSchema: { properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } }
    await open(({ body, headers, json }) => {
      const { cursor } = body.params ?? {}
      if (body.method === 'tools/list')
        json(200, result(body.id, cursor === undefined ? { tools: [], nextCursor: 'two' } : { tools: [tool] }))
      else if (headers['mcp-param-region'] === 'eu') json(200, result(body.id))
      else json(400, { jsonrpc: '2.0', id: body.id, error: { code: -32_020, message: 'Header mismatch' } })
    })
    bridge.send(call(1, 'tools/call', { name: 'a', arguments: { region: 'eu' } }))
    expect(await bridge.answer(1)).toMatchObject({ result: {} })
    expect(server.all.map(({ body }) => body.method)).toEqual(['tools/call', 'tools/list', 'tools/list', 'tools/call'])
    // A failing retry is not repeated for ever.
    bridge.send(call(2, 'tools/call', { name: 'b' }))
    expect((await bridge.answer(2)).error).toMatchObject({ code: -32_020 })
    expect(server.by('tools/call')).toHaveLength(4)
  })

  it('are not sent again for another refusal', async () => {
    await open(({ body, json }) => json(400, { jsonrpc: '2.0', id: body.id, error: { code: -32_602, message: 'no' } }))
    bridge.send(call(1, 'tools/call', { name: 'a', arguments: {} }))
    expect((await bridge.answer(1)).error).toMatchObject({ code: -32_602 })
    expect(server.all).toHaveLength(1)
  })

  it('are cancelled by the end of their stream, and nothing is sent or answered', async () => {
    await open((arrived) => arrived.events()('data: {"jsonrpc":"2.0","method":"notifications/message"}'))
    bridge.send(call('listen', 'subscriptions/listen'), call(5, 'tools/call', { name: 'slow' }))
    await vi.waitFor(() => expect(bridge.lines).toHaveLength(2))
    bridge.send({ method: 'notifications/cancelled', params: { requestId: 5 } })
    await vi.waitFor(() => expect(server.by('tools/call')[0]?.isAborted).toBe(true))
    expect(server.by('subscriptions/listen')[0]?.isAborted).toBe(false)
    bridge.send({ method: 'notifications/cancelled', params: { requestId: 'listen' } })
    await vi.waitFor(() => expect(server.by('subscriptions/listen')[0]?.isAborted).toBe(true))
    expect(server.all).toHaveLength(2)
    expect(bridge.lines).toHaveLength(2)
  })

  it('whose stream is lost are not resumed', async () => {
    await open((arrived) => {
      arrived.events()('id: 1', 'data: {"jsonrpc":"2.0","method":"notifications/message"}')
      setTimeout(() => arrived.response.destroy(), 20)
    })
    bridge.send(call('listen', 'subscriptions/listen'))
    expect((await bridge.answer('listen')).error).toMatchObject({ data: { reason: 'stream_lost' } })
    expect(server.all).toHaveLength(1)
  })

  it('run beside each other: hundreds, and a subscription is none of them', async () => {
    let atOnce = 0
    let most = 0
    await open((arrived) => {
      if (arrived.body.method === 'subscriptions/listen') {
        arrived.events()(': open')
        return
      }
      most = Math.max(most, ++atOnce)
      setTimeout(() => {
        atOnce--
        arrived.json(200, result(arrived.body.id, { n: arrived.body.id }))
      }, 30)
    })
    bridge.send(call('listen', 'subscriptions/listen'))
    const ids = Array.from({ length: 700 }, (_, index) => index)
    bridge.send(...ids.map((id) => call(id, 'tools/call', { name: 'x' })))
    await vi.waitFor(() => expect(bridge.lines).toHaveLength(700), 15_000)
    expect(bridge.replies().filter(({ id, result: got }) => got?.['n'] !== id)).toEqual([])
    expect(most).toBeGreaterThan(50)
    expect(most).toBeLessThanOrEqual(256)
  })

  it('with an id that is in use are refused; 1 and "1" are two ids', async () => {
    const waiting: Arrived[] = []
    await open((arrived) => void waiting.push(arrived))
    bridge.send(call(1, 'a'), call('1', 'b'), call(1, 'c'))
    await vi.waitFor(() => expect(waiting).toHaveLength(2))
    expect((await bridge.answer(1)).error?.message).toContain('still in flight')
    for (const arrived of waiting) arrived.json(200, result(arrived.body.id))
    expect(await bridge.answer('1')).toMatchObject({ result: {} })
    await vi.waitFor(() => expect(bridge.lines).toHaveLength(3))
  })
})
