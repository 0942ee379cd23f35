import { afterEach, expect, test, vi } from 'vitest'
import {
  type Arrived,
  INITIALIZE,
  initialized,
  openBridge,
  result,
  startServer,
  type TestServer,
} from '../../support/bridge/harness.ts'

const ALL_BYTES = 64 * 1024 * 1024

/** A server of 2024-11-05: a stream at one address, messages at the one that the stream names. */
async function oldServer(options: { address?: string; refuses?: number; answer?: (one: Arrived) => boolean } = {}) {
  const streams: { readonly send: (...lines: string[]) => void; readonly response: Arrived['response'] }[] = []
  const say = (message: object) =>
    streams.at(-1)?.send('event: message', `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}`)
  const server = await startServer((arrived) => {
    const { method, path, body, response } = arrived
    if (method === 'GET') {
      const send = arrived.events()
      streams.push({ send, response })
      send('event: endpoint', `data: ${options.address ?? `/messages?s=${streams.length}`}`)
    } else if (path === '/mcp') response.writeHead(options.refuses ?? 405).end()
    else {
      response.writeHead(202).end()
      if (options.answer?.(arrived) === true) return
      if (body.method === 'initialize') say(initialized(body.id, '2024-11-05'))
      else if (body.id !== undefined && body.method !== undefined) say(result(body.id, { of: body.method }))
    }
  })
  return { ...server, streams, say }
}

const open: { close(): unknown }[] = []
const keep = <T extends { close(): unknown }>(made: T): T => {
  open.push(made)
  return made
}
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close()
})

async function shaken(server: TestServer) {
  const bridge = keep(openBridge(server.url))
  bridge.read()
  bridge.send(INITIALIZE)
  await bridge.answer(0)
  bridge.send({ method: 'notifications/initialized' })
  return bridge
}

test.each([400, 404, 405])('a server that refuses initialize with %i is spoken to over its stream', async (refuses) => {
  const server = keep(await oldServer({ refuses }))
  const bridge = await shaken(server)
  bridge.send({ id: 1, method: 'tools/list' }, { id: '1', method: 'prompts/list' })
  expect((await bridge.answer(1)).result).toEqual({ of: 'tools/list' })
  expect((await bridge.answer('1')).result).toEqual({ of: 'prompts/list' })
  expect(server.streams).toHaveLength(1)
  const posts = server.all.filter(({ path }) => path === '/messages?s=1')
  expect(posts.map(({ body }) => body.method)).toEqual([
    'initialize',
    'notifications/initialized',
    'tools/list',
    'prompts/list',
  ])
  for (const { headers } of posts) expect(Object.keys(headers).filter((name) => name.startsWith('mcp-'))).toEqual([])
})

test('notifications and requests of the server reach the client', async () => {
  const server = keep(await oldServer())
  const bridge = await shaken(server)
  await vi.waitFor(
    () => {
      server.say({ method: 'notifications/tools/list_changed' })
      expect(bridge.replies().some(({ method }) => method === 'notifications/tools/list_changed')).toBe(true)
    },
    { timeout: 10_000, interval: 20 },
  )
  server.say({ id: 7, method: 'roots/list' })
  await vi.waitFor(() => expect(bridge.replies().some(({ method }) => method === 'roots/list')).toBe(true))
  bridge.send({ id: 7, result: { roots: [] } })
  await vi.waitFor(() => expect(server.all.at(-1)?.body).toMatchObject({ id: 7, result: { roots: [] } }))
})

test('a notification that comes before an answer stays before it', async () => {
  let say: (message: object) => void = () => undefined
  const server = keep(
    await oldServer({
      answer: ({ body }) => {
        if (body.method === 'tools/call') say({ method: 'notifications/progress', params: { progress: 1 } })
        return false
      },
    }),
  )
  say = server.say
  const bridge = await shaken(server)
  bridge.send({ id: 2, method: 'tools/call', params: { name: 'a' } })
  await bridge.answer(2)
  expect(bridge.replies().map(({ id, method }) => method ?? id)).toEqual([0, 'notifications/progress', 2])
})

test('a client that does not read holds the stream back, not memory', async () => {
  const server = keep(await oldServer({ answer: ({ body }) => body.method === 'tools/call' }))
  const bridge = await shaken(server)
  bridge.send({ id: 2, method: 'tools/call' })
  await vi.waitFor(() => expect(server.by('tools/call')).toHaveLength(1))
  bridge.stdout.pause()
  const data = `event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"text":"${'x'.repeat(64 * 1024)}"}}\n\n`
  let sent = 0
  const more = (): void => {
    const stream = server.streams.at(-1)?.response
    while (sent < ALL_BYTES) {
      sent += data.length
      if (stream?.write(data) === false) return void stream.once('drain', more)
    }
    server.say(result(2))
  }
  more()
  let before = -1
  await vi.waitFor(
    () => {
      const isStill = sent === before
      before = sent
      expect(isStill).toBe(true)
    },
    { timeout: 10_000, interval: 300 },
  )
  expect(sent).toBeLessThan(ALL_BYTES / 2)
  bridge.stdout.resume()
  await bridge.answer(2)
  expect(bridge.replies().filter(({ method }) => method === 'notifications/message').length).toBeGreaterThan(1000)
}, 40_000)

test('a stream that ends is a session that is lost: another one is begun, and what ran says so', async () => {
  const server = keep(await oldServer({ answer: ({ body }) => body.method === 'tools/call' }))
  const bridge = await shaken(server)
  bridge.send({ id: 3, method: 'tools/call', params: { name: 'a' } })
  await vi.waitFor(() => expect(server.by('tools/call')).toHaveLength(1))
  server.streams[0]?.response.end()
  expect((await bridge.answer(3)).error?.data).toMatchObject({ reason: 'stream_lost' })
  bridge.send({ id: 4, method: 'tools/list' })
  expect((await bridge.answer(4)).result).toEqual({ of: 'tools/list' })
  expect(server.by('initialize').filter(({ path }) => path !== '/mcp')).toHaveLength(2)
})

test('messages go to no other origin, and a server that has no stream is refused as it says', async () => {
  const other = keep(await startServer(({ json }) => json(200, {})))
  const server = keep(await oldServer({ address: `${new URL(other.url).origin}/messages` }))
  const bridge = keep(openBridge(server.url))
  bridge.read()
  bridge.send(INITIALIZE)
  expect((await bridge.answer(0)).error?.data).toMatchObject({ reason: 'endpoint_refused', status: 405 })
  expect(other.all).toEqual([])
  const none = keep(await startServer(({ response }) => void response.writeHead(404).end()))
  const second = keep(openBridge(none.url))
  second.read()
  second.send(INITIALIZE)
  expect((await second.answer(0)).error?.data).toMatchObject({ reason: 'endpoint_refused', status: 404 })
})

test('a server that is sick is not taken for an old one', async () => {
  const server = keep(await oldServer({ refuses: 500 }))
  const bridge = keep(openBridge(server.url))
  bridge.read()
  bridge.send(INITIALIZE)
  expect((await bridge.answer(0)).error?.data).toMatchObject({ reason: 'endpoint_refused', status: 500 })
  expect(server.by('GET')).toEqual([])
})

test('an address for messages has a bound', async () => {
  const server = keep(await oldServer({ address: `/messages?s=${'x'.repeat(5000)}` }))
  const bridge = keep(openBridge(server.url))
  bridge.read()
  bridge.send(INITIALIZE)
  expect((await bridge.answer(0)).error?.data).toMatchObject({ reason: 'endpoint_refused', status: 405 })
})

test('the stream ends with the bridge', async () => {
  const server = keep(await oldServer())
  const bridge = await shaken(server)
  await bridge.close()
  open.pop()
  await vi.waitFor(() => expect(server.by('GET')[0]?.isAborted).toBe(true))
})
