import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  type Arrived,
  INITIALIZE,
  initialized,
  openBridge,
  result,
  shakeHands,
  startServer,
  type TestBridge,
  type TestServer,
} from '../../support/bridge/harness.ts'

let server: TestServer
let bridge: TestBridge

afterEach(() => server.close())

/** A bridge whose client has shaken hands with a server with sessions, which leaves the rest to `answer`. */
async function open(answer: (arrived: Arrived) => void, session: () => string = () => 's1'): Promise<void> {
  server = await startServer((arrived) => {
    const isNew = arrived.body.method === 'initialize'
    if (arrived.method === 'GET' || !shakeHands(arrived, isNew ? session() : '')) answer(arrived)
  })
  bridge = openBridge(server.url)
  bridge.read()
  bridge.send(INITIALIZE)
  await bridge.answer(0)
  bridge.send({ method: 'notifications/initialized' })
}

const none = ({ response }: Arrived): void => void response.writeHead(405).end()
const isGet = ({ method }: Arrived): boolean => method === 'GET'
const LIST = { id: 1, method: 'tools/list' }

describe('a session (2025-11-25)', () => {
  it('is sent with every request after the handshake, in order, and deleted', async () => {
    await open((arrived) => (isGet(arrived) ? none(arrived) : arrived.json(200, result(arrived.body.id))))
    bridge.send(LIST)
    await bridge.answer(1)
    await bridge.close()
    const [first, ...others] = server.all
    expect(first?.headers['mcp-session-id']).toBeUndefined()
    expect(first?.headers['mcp-protocol-version']).toBeUndefined()
    expect(first?.headers.accept).toBe('application/json, text/event-stream')
    expect(others.map(({ headers }) => headers['mcp-session-id'])).toEqual(others.map(() => 's1'))
    expect(others.map(({ headers }) => headers['mcp-protocol-version'])).toEqual(others.map(() => '2025-11-25'))
    const names = server.all.filter((one) => !isGet(one)).map(({ method, body }) => body.method ?? method)
    expect(names).toEqual(['initialize', 'notifications/initialized', 'tools/list', 'DELETE'])
  })

  it('that the server lost is re-initialized transparently', async () => {
    let session = 's1'
    await open(
      (arrived) => {
        if (isGet(arrived)) none(arrived)
        else if (arrived.headers['mcp-session-id'] === session) arrived.json(200, result(arrived.body.id))
        else arrived.response.writeHead(404).end()
      },
      () => session,
    )
    session = 's2'
    bridge.send(LIST, { id: 2, method: 'ping' })
    expect(await bridge.answer(1)).toMatchObject({ result: {} })
    expect(await bridge.answer(2)).toMatchObject({ result: {} })
    const handshake = { jsonrpc: '2.0', ...INITIALIZE }
    expect(server.by('initialize').map(({ body }) => body)).toEqual([handshake, handshake])
    expect(server.by('notifications/initialized').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's2'])
    expect(bridge.replies().filter(({ id }) => id === 0)).toHaveLength(1)
    await bridge.close()
    expect(server.by('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s2'])
  })

  it('that is re-initialized restores the client’s subscriptions and log level', async () => {
    let session = 's1'
    await open(
      (arrived) => {
        if (isGet(arrived)) none(arrived)
        else if (arrived.headers['mcp-session-id'] === session) arrived.json(200, result(arrived.body.id))
        else arrived.response.writeHead(404).end()
      },
      () => session,
    )
    const uri = (text: string) => ({ params: { uri: text } })
    bridge.send({ id: 1, method: 'logging/setLevel', params: { level: 'debug' } })
    bridge.send({ id: 2, method: 'resources/subscribe', ...uri('a:') })
    bridge.send({ id: 3, method: 'resources/subscribe', ...uri('b:') })
    await Promise.all([bridge.answer(1), bridge.answer(2), bridge.answer(3)])
    bridge.send({ id: 4, method: 'resources/unsubscribe', ...uri('a:') })
    await bridge.answer(4)
    session = 's2'
    bridge.send({ id: 5, method: 'ping' })
    await bridge.answer(5)
    const again = server.all.filter(({ headers }) => headers['mcp-session-id'] === 's2').map(({ body }) => body)
    expect(again.filter(({ params }) => params !== undefined)).toMatchObject([
      { method: 'logging/setLevel', params: { level: 'debug' } },
      { method: 'resources/subscribe', params: { uri: 'b:' } },
    ])
    expect(bridge.lines).toHaveLength(6)
    await bridge.close()
  })

  it('that cannot be re-initialized is an error with the reason', async () => {
    let isUp = true
    server = await startServer((arrived) => {
      if (!isUp) arrived.response.writeHead(404).end()
      else if (!shakeHands(arrived, 's1')) none(arrived)
    })
    bridge = openBridge(server.url)
    bridge.read()
    bridge.send(INITIALIZE)
    await bridge.answer(0)
    isUp = false
    bridge.send(LIST)
    expect((await bridge.answer(1)).error).toMatchObject({ data: { reason: 'session_lost' } })
    await bridge.close()
  })

  it('ends where the server speaks another revision since', async () => {
    let version = '2025-11-25'
    server = await startServer((arrived) => {
      if (arrived.body.method === 'initialize')
        arrived.json(200, initialized(arrived.body.id, version), { 'mcp-session-id': version })
      else if (arrived.headers['mcp-session-id'] === version) arrived.json(200, result(arrived.body.id))
      else arrived.response.writeHead(404).end()
    })
    bridge = openBridge(server.url)
    bridge.read()
    bridge.send(INITIALIZE)
    await bridge.answer(0)
    version = '2025-06-18'
    bridge.send(LIST)
    const { error } = await bridge.answer(1)
    expect(error).toMatchObject({ data: { reason: 'session_lost' } })
    expect(error?.message).toContain('restart the client')
    await bridge.close()
  })

  it('carries requests of the server and their answers', async () => {
    await open((arrived) => {
      if (isGet(arrived)) return none(arrived)
      if (arrived.body.result !== undefined) {
        arrived.response.writeHead(202).end()
        const [call] = server.by('tools/call')
        call?.response.end(`data: ${JSON.stringify(result(3, { heard: arrived.body.result }))}\n\n`)
        return
      }
      arrived.events()('data: {"jsonrpc":"2.0","id":"ask-1","method":"elicitation/create","params":{}}')
    })
    bridge.send({ id: 3, method: 'tools/call', params: { name: 'ask' } })
    await vi.waitFor(() => expect(bridge.replies().find(({ method }) => method === 'elicitation/create')).toBeDefined())
    bridge.send({ id: 'ask-1', result: { action: 'accept' } })
    expect((await bridge.answer(3)).result).toEqual({ heard: { action: 'accept' } })
    await bridge.close()
  })

  it('receives a cancellation, and its stream ends', async () => {
    await open((arrived) => {
      if (isGet(arrived)) none(arrived)
      else if (arrived.body.method === 'tools/call')
        arrived.events()('data: {"jsonrpc":"2.0","method":"notifications/message"}')
      else arrived.response.writeHead(202).end()
    })
    bridge.send({ id: 4, method: 'tools/call', params: { name: 'slow' } })
    await vi.waitFor(() => expect(bridge.lines.join('')).toContain('notifications/message'))
    bridge.send({ method: 'notifications/cancelled', params: { requestId: 4, reason: 'x' } })
    await vi.waitFor(() => expect(server.by('notifications/cancelled')).toHaveLength(1))
    await vi.waitFor(() => expect(server.by('tools/call')[0]?.isAborted).toBe(true))
    await bridge.close()
    expect(bridge.replies().filter(({ id }) => id === 4)).toEqual([])
  })

  it('that begins once more ends the one before', async () => {
    let count = 1
    await open(none, () => `s${count++}`)
    bridge.send({ ...INITIALIZE, id: 'again' }, { id: 5, method: 'ping' })
    await bridge.answer('again')
    await vi.waitFor(() => expect(server.by('DELETE')).toHaveLength(1))
    expect(server.by('DELETE')[0]?.headers['mcp-session-id']).toBe('s1')
    await vi.waitFor(() => expect(server.by('ping')[0]?.headers['mcp-session-id']).toBe('s2'))
    await bridge.close()
  })
})

describe('streams (2025-11-25)', () => {
  it('of an answer are resumed where they ended, also when the server is away for a while', async () => {
    const resumed: (string | undefined)[] = []
    await open((arrived) => {
      if (!isGet(arrived)) {
        const send = arrived.events()
        send('id: a1', 'retry: 20', 'data:')
        send('id: a2', 'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}')
        setTimeout(() => arrived.response.destroy(), 20)
        return
      }
      const { 'last-event-id': from } = arrived.headers
      if (from === undefined) return none(arrived)
      resumed.push(String(from))
      if (resumed.length < 3) return void arrived.response.destroy()
      const send = arrived.events()
      send('id: a3', 'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2}}')
      send('id: a4', `data: ${JSON.stringify(result(6, { done: true }))}`)
    })
    bridge.send({ id: 6, method: 'tools/call', params: { name: 'long' } })
    expect((await bridge.answer(6)).result).toEqual({ done: true })
    expect(resumed).toEqual(['a2', 'a2', 'a2'])
    const progress = bridge.replies().filter(({ method }) => method === 'notifications/progress')
    expect(progress.map(({ params }) => params?.['progress'])).toEqual([1, 2])
    await bridge.close()
  })

  it('of the server are opened again and resumed', async () => {
    let opened = 0
    await open((arrived) => {
      if (!isGet(arrived)) return arrived.json(200, result(arrived.body.id))
      const send = arrived.events()
      opened += 1
      send(
        `id: g${opened}`,
        'retry: 10',
        `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"n":${opened}}}`,
      )
      if (opened < 3) arrived.response.end()
    })
    await vi.waitFor(() => expect(bridge.lines.join('')).toContain('"n":3'), 10_000)
    expect(server.by('GET').map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'g1', 'g2'])
    expect(server.by('GET').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's1', 's1'])
    await bridge.close()
    await vi.waitFor(() => expect(server.by('GET').at(-1)?.isAborted).toBe(true))
  })

  it('of an answer are polled as long as each brings a new event id, however often', async () => {
    const polls = 12
    let polled = 0
    await open((arrived) => {
      const { response } = arrived
      const send =
        arrived.method === 'GET' && arrived.headers['last-event-id'] === undefined ? undefined : arrived.events()
      if (send === undefined) return none(arrived)
      if (isGet(arrived)) polled += 1
      if (polled === polls) send(`id: end`, `data: ${JSON.stringify(result(6, { done: true }))}`)
      else {
        send(`id: p${polled}`, 'retry: 1', 'data:')
        response.end()
      }
    })
    bridge.send({ id: 6, method: 'tools/call', params: { name: 'long' } })
    expect((await bridge.answer(6)).result).toEqual({ done: true })
    expect(polled).toBe(polls)
    await bridge.close()
  })

  it.each([502, 503, 504, 429, 409])('of an answer are resumed after %s', async (status) => {
    let asked = 0
    await open((arrived) => {
      if (!isGet(arrived)) {
        arrived.events()('id: a1', 'retry: 1', 'data:')
        return void arrived.response.end()
      }
      if (arrived.headers['last-event-id'] === undefined) return none(arrived)
      asked += 1
      if (asked < 4) return void arrived.response.writeHead(status, { 'retry-after': '0' }).end('not now')
      arrived.events()('id: a2', `data: ${JSON.stringify(result(6, { done: true }))}`)
    })
    bridge.send({ id: 6, method: 'tools/call', params: { name: 'long' } })
    expect((await bridge.answer(6)).result).toEqual({ done: true })
    expect(asked).toBe(4)
    await bridge.close()
  })

  it.each([400, 409, 403, 404])(
    'of the server are opened again when the one after a cut is refused with %s',
    async (status) => {
      let opened = 0
      await open((arrived) => {
        if (!isGet(arrived)) return arrived.json(200, result(arrived.body.id))
        opened += 1
        if (opened === 2 || (opened === 3 && status !== 404)) return void arrived.response.writeHead(status).end()
        arrived.events()(
          `id: g${opened}`,
          'retry: 10',
          `data: {"jsonrpc":"2.0","method":"n/m","params":{"n":${opened}}}`,
        )
        if (opened === 1) arrived.response.end()
      })
      await vi.waitFor(() => expect(bridge.lines.join('')).toContain(status === 404 ? '"n":3' : '"n":4'), 10_000)
      await bridge.close()
    },
  )

  it('of the server that lives is no failure: the pause is what the server asks for, each time', async () => {
    const pauses: number[] = []
    const times: number[] = []
    await open((arrived) => {
      if (!isGet(arrived)) return arrived.json(200, result(arrived.body.id))
      times.push(performance.now())
      arrived.events()(`id: g${times.length}`, 'retry: 400', 'data:')
      arrived.response.end()
    })
    await vi.waitFor(() => expect(times.length).toBeGreaterThan(8), 15_000)
    for (const [index, time] of times.entries()) if (index > 0) pauses.push(time - (times[index - 1] ?? 0))
    // Waits are a twentieth here; a pause that doubled would be 100 ms and more from the eighth on.
    expect(pauses.toSorted((a, b) => a - b)[Math.floor(pauses.length / 2)]).toBeLessThan(90)
    await bridge.close()
  })

  it('of the server that is no data after a suspend is opened again where it ended', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      await open((arrived) => {
        if (!isGet(arrived)) return arrived.json(200, result(arrived.body.id))
        arrived.events()('id: awake', 'data: {"jsonrpc":"2.0","method":"n/m"}')
      })
      await vi.waitFor(() => expect(bridge.lines.join('')).toContain('n/m'), 10_000)
      // The clock goes on by hours, and no timer ran.
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      vi.setSystemTime(Date.now() + 3 * 3_600_000)
      await vi.waitFor(() => expect(server.by('GET')).toHaveLength(2), 15_000)
      expect(server.by('GET')[1]?.headers['last-event-id']).toBe('awake')
      await bridge.close()
    } finally {
      vi.useRealTimers()
    }
  }, 40_000)

  it('an answer that can not be resumed says that it may have been done', async () => {
    await open((arrived) => {
      if (isGet(arrived)) return none(arrived)
      arrived.events()('id: b1', 'data:')
      arrived.response.end()
    })
    bridge.send({ id: 8, method: 'tools/call', params: { name: 'x' } })
    const { error } = await bridge.answer(8)
    expect(error).toMatchObject({ data: { reason: 'stream_lost' } })
    expect(error?.message).toContain('may have been executed')
    await bridge.close()
  })
})
