import { afterEach, describe, expect, it, vi } from 'vitest'
import { ReplayedRequests } from '../../../src/bridge/replayed-requests.ts'
import { type Arrived, INITIALIZE, openBridge, result, shakeHands, startServer } from '../../support/bridge/harness.ts'

let server: Awaited<ReturnType<typeof startServer>>
let bridge: ReturnType<typeof openBridge>
let session = 's1'

afterEach(() => server.close())

/** A bridge whose client has shaken hands; what is not of the session of the moment, or a stream, is for `answer`. */
async function open(answer: (arrived: Arrived) => void): Promise<void> {
  session = 's1'
  server = await startServer((arrived) => {
    const { method, headers, body } = arrived
    if (method === 'GET') answer(arrived)
    else if (shakeHands(arrived, session)) return
    else if (headers['mcp-session-id'] === session && body.method !== 'tools/call') arrived.json(200, result(body.id))
    else answer(arrived)
  })
  bridge = openBridge(server.url)
  bridge.read()
  bridge.send(INITIALIZE)
  await bridge.answer(0)
  bridge.send({ method: 'notifications/initialized' })
}

const refuse = ({ method, response }: Arrived): void => void response.writeHead(method === 'GET' ? 405 : 404).end()
const sessionsOf = (method: string): unknown[] => server.by(method).map(({ headers }) => headers['mcp-session-id'])

describe('a session that the server lost', () => {
  it('is re-initialized once, also for requests that learn of the loss later', async () => {
    const late: Arrived[] = []
    await open((arrived) => (arrived.body.method === 'prompts/list' ? late.push(arrived) : refuse(arrived)))
    session = 's2'
    bridge.send({ id: 1, method: 'prompts/list' })
    await vi.waitFor(() => expect(late).toHaveLength(1))
    bridge.send({ id: 2, method: 'ping' })
    expect(await bridge.answer(2)).toMatchObject({ result: {} })
    for (const one of late) refuse(one)
    expect(await bridge.answer(1)).toMatchObject({ result: {} })
    expect(server.by('initialize')).toHaveLength(2)
    await bridge.close()
  })

  it.each([
    [
      'a message about its initialization',
      'application/json',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}',
    ],
    ['plain text', 'text/plain', 'Bad Request'],
    ['nothing', '', ''],
  ])('is re-initialized after 400 with %s', async (_what, type, body) => {
    await open(({ method, response }) =>
      method === 'GET'
        ? void response.writeHead(405).end()
        : void response.writeHead(400, type === '' ? {} : { 'content-type': type }).end(body),
    )
    session = 's2'
    bridge.send({ id: 1, method: 'ping' })
    expect(await bridge.answer(1)).toMatchObject({ result: {} })
    expect(sessionsOf('ping')).toEqual(['s1', 's2'])
    await bridge.close()
  })

  it('on every stream fails: it is not re-initialized for ever', async () => {
    await open(({ method, response }) => void response.writeHead(method === 'GET' ? 404 : 400).end())
    await vi.waitFor(() => expect(server.by('GET')).toHaveLength(2), 10_000)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(server.by('GET')).toHaveLength(2)
    expect(server.by('initialize')).toHaveLength(2)
    await bridge.close()
  })

  it('takes its streams along: none is resumed in another', async () => {
    await open((arrived) =>
      arrived.body.method === 'tools/call' ? arrived.events()('id: a1', 'data:') : refuse(arrived),
    )
    bridge.send({ id: 1, method: 'tools/call', params: { name: 'long' } })
    await vi.waitFor(() => expect(server.by('tools/call')).toHaveLength(1))
    session = 's2'
    bridge.send({ id: 2, method: 'ping' })
    await bridge.answer(2)
    server.by('tools/call')[0]?.response.end()
    expect((await bridge.answer(1)).error).toMatchObject({ data: { reason: 'session_lost' } })
    expect(server.by('GET').filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([])
    await bridge.close()
  })

  it('is re-initialized when the message stream reports it', async () => {
    await open((arrived) => {
      if (arrived.headers['mcp-session-id'] !== 's1') return refuse(arrived)
      session = 's2'
      arrived.response.writeHead(404).end()
    })
    await vi.waitFor(() => expect(sessionsOf('GET')).toEqual(['s1', 's2']), 15_000)
    expect(server.by('initialize')).toHaveLength(2)
    await bridge.close()
  })

  it('was asked for so many subscriptions, which the next one is asked for', () => {
    const standing = new ReplayedRequests()
    const subscribe = (uri: string) => ({
      kind: 'request' as const,
      bytes: Buffer.alloc(0),
      id: uri,
      method: 'resources/subscribe',
      params: { uri },
    })
    for (let count = 0; count < 1_005; count++) standing.note(subscribe(`a:${count}`))
    expect(standing.list()).toHaveLength(1_000)
  })
})
