import { afterEach, expect, test, vi } from 'vitest'
import {
  createInformer,
  createQueue,
  type Informer,
  type KubeClient,
  type WatchEvent,
} from '../../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'
import { createManualTimers, silentLog } from '../../support/kube/manual-timers.ts'

let informer: Informer | undefined
afterEach(() => informer?.close())

const object = (name: string, resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'n', resourceVersion },
})

test('objects that a watch adds, changes and deletes are known, and reported once', async () => {
  const events: WatchEvent[] = [
    { type: 'ADDED', object: object('b', '2') },
    { type: 'MODIFIED', object: object('a', '3') },
    { type: 'MODIFIED', object: object('a', '3') },
    { type: 'DELETED', object: object('b', '4') },
    { type: 'DELETED', object: object('unknown', '5') },
  ]
  const client: Pick<KubeClient, 'list' | 'watch'> = {
    list: () => Promise.resolve({ items: [object('a', '1')], resourceVersion: '1' }),
    async *watch(_type, _selection, { signal }) {
      for (const event of events.splice(0)) yield await Promise.resolve(event)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  }
  const notified: string[] = []
  informer = createInformer({
    client: client as KubeClient,
    type: CLUSTER_TYPES.ConfigMap,
    onChange: (key, before, after) =>
      void notified.push(`${key} ${before?.metadata.resourceVersion} ${after?.metadata.resourceVersion}`),
    log: silentLog,
  })
  await vi.waitFor(() => expect(notified).toHaveLength(4), 15_000)
  expect(notified).toEqual(['n/a undefined 1', 'n/b undefined 2', 'n/a 1 3', 'n/b 2 undefined'])
  expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(['a'])
})

test('a key that succeeded begins with the shortest pause when it fails again', async () => {
  const timers = createManualTimers()
  const startedAtMs = timers.now()
  const at: number[] = []
  const fails = [true, true, true, true, false, true, false]
  const queue = createQueue({
    log: silentLog,
    timers,
    random: () => 1,
    work: async () => {
      at.push(timers.now() - startedAtMs)
      if (fails.shift() === true) throw new Error('as it happens')
      return Promise.resolve(undefined)
    },
  })
  queue.add('a')
  await timers.advance(1000)
  queue.add('a')
  await timers.advance(1000)
  expect(at).toEqual([0, 5, 15, 35, 75, 1000, 1005])
})
