import type { ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { event, idle, object, serve } from '../../support/kube/collection-server.ts'
import type { KubeObject } from '../../../src/kube/index.ts'

test('a watch requests bookmarks and resumes from the newest received version', async () => {
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

test('an event of an unknown type is ignored', async () => {
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

test('a watch that is silent for too long is reopened', async () => {
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

test('an unknown kind delays the start only if it is required', async () => {
  const unknown = (_request: unknown, response: ServerResponse): void => {
    response.writeHead(404).end(JSON.stringify({ kind: 'Status', code: 404, reason: 'NotFound' }))
  }
  const { informer, changes } = await serve({ list: unknown, watches: [idle], mayBeMissing: true })
  await informer.synced
  expect([informer.problem, informer.list(), changes]).toEqual([undefined, [], []])
  const strict = await serve({ list: unknown, watches: [idle] })
  await vi.waitFor(() => expect(strict.informer.problem).toBe('404 NotFound'), 5000)
  expect(strict.informer.isSynced).toBe(false)
})

test('the response of a write is known at once, until the watch reports a newer version', async () => {
  let send = (_line: string): void => {}
  const { informer, changes } = await serve({
    watches: [
      (response) => {
        idle(response)
        send = (line) => response.write(line)
      },
    ],
    silenceMs: 60_000,
  })
  await informer.synced
  const stored = (name: string, version: number): KubeObject => ({
    apiVersion: 'v1',
    kind: 'X',
    ...object(name, version),
  })
  const heard = (name: string, version: number): void =>
    send(event('ADDED', name, version) + event('DELETED', name, version))
  await vi.waitFor(() => {
    heard('open', 11)
    expect(changes).toContain('n/open@11')
  })
  // Longer numbers are later ones.
  informer.learn(stored('a', 100))
  informer.learn(stored('made', 101))
  send(event('MODIFIED', 'a', 99) + event('DELETED', 'made', 98))
  send(event('DELETED', 'a', 102))
  await vi.waitFor(() => expect(changes).toContain('-n/a'))
  // The watch has come further than this write, so that it knows better.
  informer.learn(stored('a', 100))
  const last = stored('made', 103)
  informer.learn({ ...last, metadata: { ...last.metadata, deletionTimestamp: '2026-11-22T09:59:00Z' } })
  expect(changes.filter((change) => !change.includes('open'))).toEqual(['n/a@5', 'n/a@100', 'n/made@101', '-n/a'])
})
