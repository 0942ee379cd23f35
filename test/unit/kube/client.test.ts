import { expect, test } from 'vitest'
import { monotonic } from '../../../src/core/index.ts'
import { KubeError } from '../../../src/kube/index.ts'
import { createHoldOff } from '../../../src/kube/hold-off.ts'
import { kubeErrorFrom, kubeErrorOf } from '../../../src/kube/kube-error.ts'
import { CONFIG_MAPS, idle, object, serve } from '../../support/kube/collection-server.ts'

test('pages whose version is forgotten while they are read are followed by one without pages', async () => {
  const asked: (string | null)[][] = []
  const { client, informer } = await serve({
    list: (request, response) => {
      const query = new URL(request.url ?? '', 'http://x').searchParams
      asked.push([query.get('limit'), query.get('continue')])
      const items = [object('a', 5)]
      if (query.has('continue')) response.writeHead(410).end('{"kind":"Status","code":410,"reason":"Expired"}')
      else if (query.has('limit'))
        response.end(JSON.stringify({ metadata: { resourceVersion: '9', continue: 'x' }, items }))
      else response.end(JSON.stringify({ metadata: { resourceVersion: '12' }, items: [...items, object('b', 6)] }))
    },
    watches: [idle],
  })
  await informer.synced
  asked.length = 0
  const { items, resourceVersion } = await client.list(CONFIG_MAPS, {})
  expect(items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b'])
  expect(resourceVersion).toBe('12')
  expect(asked.slice(0, 3)).toEqual([
    ['500', null],
    ['500', 'x'],
    [null, null],
  ])
})

test('while a server wants to rest from a verb on a resource, that is not sent, and everything else is', async () => {
  let isBusy = true
  let lists = 0
  const { client } = await serve({
    list: (request, response) => {
      if (request.method === 'GET') lists++
      if (isBusy && request.method === 'GET') response.writeHead(503, { 'retry-after': '60' }).end()
      else response.end(JSON.stringify({ ...object('a', 1), metadata: { name: 'a', resourceVersion: '1' } }))
    },
    watches: [idle],
  })
  await expect(client.get(CONFIG_MAPS, 'n', 'a')).rejects.toMatchObject({ status: 503, retryAfterSeconds: 60 })
  isBusy = false
  const sent = lists
  await expect(client.get(CONFIG_MAPS, 'n', 'b')).rejects.toMatchObject({ status: 429, retryAfterSeconds: 60 })
  expect(lists).toBe(sent)
  await client.apply(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'n' } })
})

test('the cool-down expires, and applies to 429 and 5xx only', () => {
  let nowMs = 5
  const holdOff = createHoldOff(() => monotonic(nowMs))
  holdOff.note('GET pods', new KubeError(429, '', { retryAfterSeconds: 2 }))
  holdOff.note('GET nodes', new KubeError(403, '', { retryAfterSeconds: 2 }))
  holdOff.note('GET leases', new KubeError(500, ''))
  nowMs += 1001
  expect(() => holdOff.check('GET pods')).toThrow(expect.objectContaining({ status: 429, retryAfterSeconds: 1 }))
  nowMs += 999
  for (const kind of ['GET pods', 'GET nodes', 'GET leases']) expect(() => holdOff.check(kind)).not.toThrow()
})

test.each([
  ['7', undefined, 7],
  ['0', undefined, 1],
  ['86400', undefined, 300],
  ['-1', undefined, undefined],
  ['soon', undefined, undefined],
  [undefined, 3, 3],
  [undefined, 1e300, 300],
  [undefined, -5, undefined],
  [undefined, '9', undefined],
])('Retry-After %s and retryAfterSeconds %s are a rest of %s seconds', (header, member, seconds) => {
  const body = { kind: 'Status', details: { retryAfterSeconds: member } }
  expect(kubeErrorOf(429, Buffer.from(JSON.stringify(body)), header).retryAfterSeconds).toBe(seconds)
})

test('Retry-After may be a date', () => {
  const date = new Date(Date.now() + 20_000).toUTCString()
  expect(kubeErrorOf(503, Buffer.alloc(0), date).retryAfterSeconds).toBeGreaterThan(17)
  expect(kubeErrorFrom(0, null)).toMatchObject({ status: 0, reason: '' })
})
