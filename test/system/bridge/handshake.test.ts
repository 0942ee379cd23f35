import { afterEach, describe, expect, it, vi } from 'vitest'
import { Session } from '../../../src/bridge/session.ts'
import { type Arrived, INITIALIZE, openBridge, shakeHands, startServer } from '../../support/bridge/harness.ts'

const handshake = { kind: 'request' as const, bytes: Buffer.alloc(0), id: 0, method: 'initialize', params: {} }
const establish = (id: string | undefined, protocolVersion: unknown) => {
  const session = new Session()
  session.establish(
    handshake,
    { headers: id === undefined ? {} : { 'mcp-session-id': id } },
    { protocolVersion },
    false,
  )
  return session.headers()
}

describe('what a server says in a handshake', () => {
  it('is sent with every request', () => {
    expect(establish('s-1', '2025-11-25')).toEqual({ 'mcp-protocol-version': '2025-11-25', 'mcp-session-id': 's-1' })
    expect(establish(undefined, '2025-11-25')).toEqual({ 'mcp-protocol-version': '2025-11-25' })
  })

  it.each(['', 'a b', 'ä', 'a\r\nx: y', 'x'.repeat(2049)])('is no session id: %j', (id) => {
    expect(() => establish(id, '2025-11-25')).toThrow('an invalid session id')
  })

  it.each([undefined, 1, '', 'a b', 'a\r\nx: y', 'x'.repeat(65)])('is no revision: %j', (version) => {
    expect(() => establish('s-1', version)).toThrow('no protocolVersion')
  })
})

describe('a refusal', () => {
  let server: Awaited<ReturnType<typeof startServer>>
  let bridge: ReturnType<typeof openBridge>
  afterEach(async () => {
    await bridge.close()
    await server.close()
  })

  async function open(answer: (arrived: Arrived) => void): Promise<void> {
    server = await startServer((arrived) => {
      const isStream = arrived.method === 'GET'
      if (isStream || !shakeHands(arrived, 's1')) answer(arrived)
    })
    bridge = openBridge(server.url)
    bridge.read()
    bridge.send(INITIALIZE)
    await bridge.answer(0)
  }
  const refusal = (id: unknown, message: string) => ({ jsonrpc: '2.0', id, error: { code: -32_602, message } })

  it('that says nothing of the session ends none', async () => {
    await open(({ body, json }) => json(400, refusal(body.id, 'no such tool')))
    bridge.send({ id: 1, method: 'tools/call', params: { name: 'a' } })
    expect((await bridge.answer(1)).error).toMatchObject({ code: -32_602, message: 'no such tool' })
    expect(server.by('initialize')).toHaveLength(1)
  })

  it('of another request is no answer to this one', async () => {
    await open(({ json }) => json(400, refusal('another', 'said to somebody else')))
    bridge.send({ id: 1, method: 'tools/list' })
    expect((await bridge.answer(1)).error).toMatchObject({ data: { reason: 'endpoint_refused', status: 400 } })
  })

  it('of a notification is in the log', async () => {
    await open(({ response }) => void response.writeHead(500).end())
    bridge.send({ method: 'notifications/roots/list_changed' })
    await vi.waitFor(() => expect(JSON.stringify(bridge.log.lines)).toContain('notification not delivered'))
  })

  it('to go on with a stream is heard five times, and then no more', async () => {
    await open(({ method, headers, response, events }) => {
      if (method === 'GET' && headers['last-event-id'] === undefined) response.writeHead(405).end()
      else {
        const send = events()
        if (method !== 'GET') send('id: b1', 'data:')
        response.end()
      }
    })
    bridge.send({ id: 1, method: 'tools/call', params: { name: 'a' } })
    expect((await bridge.answer(1)).error).toMatchObject({ data: { reason: 'stream_lost' } })
    expect(server.by('GET')).toHaveLength(5)
  })
})
