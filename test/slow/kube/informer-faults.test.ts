import type { ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { event, idle, object, serve } from '../../support/kube/collection-server.ts'

const page = (...items: object[]): string => JSON.stringify({ metadata: { resourceVersion: '10' }, items })
const status = (code: number, reason: string, message = ''): string =>
  `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code, reason, message } })}\n`
const versions = (queries: readonly URLSearchParams[]): (string | null)[] =>
  queries.map((query) => query.get('resourceVersion'))
const within = { timeout: 15_000 }
const silenceMs = 60_000

test('a watch that was cut goes on after the last event, not from its beginning: nothing goes back in time', async () => {
  const { changes, watches } = await serve({
    watches: [
      (response) => {
        response.write(event('MODIFIED', 'a', 11) + event('MODIFIED', 'a', 12))
        setTimeout(() => response.destroy(), 50)
      },
      idle,
    ],
    silenceMs,
  })
  await vi.waitFor(() => expect(versions(watches())).toEqual(['10', '12']), within)
  expect(changes).toEqual(['n/a@5', 'n/a@11', 'n/a@12'])
})

test.each([
  ['a Status', '{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"11"},"status":"Success"}'],
  ['a list without a version', '{"kind":"ConfigMapList","metadata":{},"items":[]}'],
  ['an object', '{}'],
  ['null', 'null'],
  ['a list of something else', '{"metadata":{"resourceVersion":"11"},"items":[{"spec":{}}]}'],
  ['a page for people', '<html>Service unavailable</html>'],
  [
    'text that is not UTF-8',
    Buffer.concat([Buffer.from('{"metadata":{"resourceVersion":"11","x":"'), Buffer.of(0xff)]),
  ],
])('%s instead of the collection does not say that everything is gone', async (_what, answer) => {
  const { changes, informer, seen } = await serve({
    list: (_request, response, round) => {
      response.end(round === 1 ? answer : page(object('a', 5)))
    },
    watches: [(response) => response.end(status(410, 'Expired')), idle],
    silenceMs,
  })
  await vi.waitFor(() => expect(seen.filter((query) => !query.has('watch'))).toHaveLength(3), within)
  await vi.waitFor(() => expect(informer.problem).toBeUndefined(), within)
  expect(changes).toEqual(['n/a@5'])
})

test.each([
  ['a line that is no JSON', 'no\n'],
  ['a line that is not UTF-8', Buffer.concat([Buffer.from('{"type":"ADDED","object":"'), Buffer.of(0xc0, 0x0a)])],
  ['an event without its object', '{"type":"ADDED"}\n'],
  ['an event of an object without a name', '{"type":"DELETED","object":{"metadata":{}}}\n'],
  ['a line without an end', Buffer.alloc(17 * 1024 * 1024, 0x20)],
  ['a version that is newer than the data', status(504, 'Timeout', 'Too large resource version: 10, current: 3')],
])('after %s everything is read again', async (_what, line) => {
  const { seen, restarts } = await serve({ watches: [(response) => void response.write(line), idle], silenceMs })
  await vi.waitFor(() => expect(seen.map((query) => query.has('watch'))).toEqual([false, true, false, true]), within)
  expect(restarts).toEqual(['lost'])
})

test('a line that comes byte by byte and never ends is silence', async () => {
  const drip = (response: ServerResponse): void => {
    const timer = setInterval(() => response.write(' '), 50)
    response.on('close', () => clearInterval(timer))
  }
  const { watches, restarts } = await serve({ watches: [drip, idle] })
  await vi.waitFor(() => expect(watches()).toHaveLength(2), within)
  expect(restarts).toEqual(['lost'])
})

test.each([
  ['an event and then a cut', event('BOOKMARK', 'b', 42), true],
  ['an event and then 410', event('BOOKMARK', 'b', 42) + status(410, 'Expired'), false],
])('%s, over and over, is no hot loop', async (_what, lines, isCut) => {
  const { seen } = await serve({
    watches: [
      (response) => {
        response.write(lines)
        if (isCut) setTimeout(() => response.destroy(), 5)
      },
    ],
  })
  await new Promise((resolve) => setTimeout(resolve, 2000))
  expect(seen.length).toBeLessThan(14)
})

test('Retry-After of a refused watch is kept', async () => {
  const at: number[] = []
  await serve({
    watches: [
      (response) => {
        at.push(performance.now())
        response.writeHead(429, { 'retry-after': '1' }).end()
      },
      () => at.push(performance.now()),
    ],
  })
  await vi.waitFor(() => expect(at).toHaveLength(2), within)
  expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(1000)
})
