import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { afterEach, expect, test, vi } from 'vitest'
import { createInformer, createKubeClient, type Informer, type ResourceType } from '../../src/kube/index.ts'
import { createApiClient } from '../../src/net/index.ts'
import { silentLog } from './manual-timers.ts'

const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
}
const closers: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const object = (name: string, version: number) => ({
  metadata: { name, namespace: 'n', resourceVersion: String(version) },
})
const event = (type: string, name: string, version: number): string =>
  `${JSON.stringify({ type, object: object(name, version) })}\n`

/** An API server of one collection whose answers are the test's; `watches` are answered in turn, the last one over and over. */
async function serve(answers: {
  list?: (request: IncomingMessage, response: ServerResponse, round: number) => void
  watches: ((response: ServerResponse, query: URLSearchParams) => void)[]
}) {
  const seen: URLSearchParams[] = []
  let lists = 0
  const server: Server = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams
    seen.push(query)
    if (query.has('watch')) {
      const number = seen.filter((one) => one.has('watch')).length - 1
      answers.watches[Math.min(number, answers.watches.length - 1)]?.(response, query)
      return
    }
    const page = { metadata: { resourceVersion: '10' }, items: [object('a', 5)] }
    if (answers.list === undefined) response.end(JSON.stringify(page))
    else answers.list(request, response, lists++)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no address')
  const api = createApiClient({ origin: `http://127.0.0.1:${address.port}` })
  closers.push(
    () => server.closeAllConnections(),
    () => server.close(),
    () => api.close(),
  )
  const client = createKubeClient({ api, token: () => undefined, fieldManager: 'test', userAgent: 'test' })
  const changes: string[] = []
  const restarts: string[] = []
  const informer: Informer = createInformer({
    client,
    type: CONFIG_MAPS,
    silenceMs: 400,
    onChange: (key, _before, after) =>
      changes.push(after === undefined ? `-${key}` : `${key}@${after.metadata.resourceVersion}`),
    onRestart: (reason) => restarts.push(reason),
    log: silentLog,
  })
  closers.push(() => informer.close())
  return { informer, changes, restarts, seen, watches: () => seen.filter((query) => query.has('watch')) }
}

const idle = (response: ServerResponse): void => response.writeHead(200).flushHeaders()

test('a watch asks for bookmarks and goes on from the newest version that it was told', async () => {
  const { watches, restarts } = await serve({
    watches: [(response) => response.end(event('BOOKMARK', 'b', 42)), idle],
  })
  await vi.waitFor(() => expect(watches().length).toBeGreaterThan(1), 5000)
  expect(watches()[0]?.get('allowWatchBookmarks')).toBe('true')
  expect(
    watches()
      .slice(0, 2)
      .map((query) => query.get('resourceVersion')),
  ).toEqual(['10', '42'])
  expect(restarts).toEqual([])
})

test('half a line at a cut is left out; nothing after it is missed', async () => {
  const { changes } = await serve({
    watches: [
      (response) => {
        response.write(event('ADDED', 'b', 11) + event('ADDED', 'c', 12).slice(0, 20))
        setTimeout(() => response.destroy(), 20)
      },
      (response) => void response.write(event('ADDED', 'c', 12)),
    ],
  })
  await vi.waitFor(() => expect(changes).toEqual(['n/a@5', 'n/b@11', 'n/c@12']), 5000)
})

test('410 in a watch lists again and says what has gone meanwhile', async () => {
  const gone = `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } })}\n`
  const { changes, restarts } = await serve({
    list: (_request, response, round) =>
      response.end(
        JSON.stringify({
          metadata: { resourceVersion: '10' },
          items: round === 0 ? [object('a', 5), object('b', 6)] : [object('a', 9)],
        }),
      ),
    watches: [(response) => void response.write(gone), idle],
  })
  await vi.waitFor(() => expect(changes).toEqual(['n/a@5', 'n/b@6', 'n/a@9', '-n/b']), 5000)
  expect(restarts[0]).toBe('expired')
})

test('an event of a type that nobody knows is passed over', async () => {
  const { changes } = await serve({
    watches: [(response) => void response.write(event('SURPRISE', 'x', 11) + event('MODIFIED', 'a', 12))],
  })
  await vi.waitFor(() => expect(changes).toEqual(['n/a@5', 'n/a@12']), 5000)
})

test('a watch that was lost is no problem any more once the server takes it again, with or without an event', async () => {
  const { informer } = await serve({
    watches: [(response) => void response.destroy(), (response) => void response.destroy(), idle],
  })
  await vi.waitFor(() => expect(informer.problem).toBeDefined(), 5000)
  await vi.waitFor(() => expect(informer.problem).toBeUndefined(), 5000)
})

test('a watch that is silent for too long is made anew', async () => {
  const { watches, restarts } = await serve({ watches: [idle] })
  await vi.waitFor(() => expect(watches().length).toBeGreaterThan(1), 10_000)
  expect(restarts).toContain('lost')
})

test('429 with Retry-After is honoured; a server that ends every watch at once is not asked in a hot loop', async () => {
  let firstAt = 0
  let secondAt = 0
  const { informer } = await serve({
    list: (_request, response, round) => {
      if (round === 0) {
        firstAt = Date.now()
        response.writeHead(429, { 'retry-after': '1' }).end()
        return
      }
      secondAt = Date.now()
      response.end(JSON.stringify({ metadata: { resourceVersion: '10' }, items: [] }))
    },
    watches: [idle],
  })
  await informer.synced
  expect(secondAt - firstAt).toBeGreaterThanOrEqual(990)
  const hurried = await serve({ watches: [(response) => response.end()] })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect(hurried.watches().length).toBeLessThan(8)
})
