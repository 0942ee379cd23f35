import { expect, test } from 'vitest'
import type { KubeClient, KubeObject } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'
import { createLookup } from '../../../src/operator/webhook/lookups.ts'
import { createManualClock } from '../../support/ports.ts'

const map = (namespace: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace },
})

/** A client whose list answers with everything, whatever was asked. */
function answering(...items: KubeObject[]) {
  const asked: unknown[] = []
  const list: KubeClient['list'] = (_type, selection) => {
    asked.push(selection)
    return Promise.resolve({ items, resourceVersion: '1' })
  }
  return { asked, items, client: { list } as KubeClient }
}

test('what is not there is not asked for again for two seconds, by anybody of that namespace', async () => {
  const clock = createManualClock()
  const { asked, client, items } = answering()
  const lookup = createLookup(client, clock)
  for (let at = 0; at < 50; at++) expect(await lookup(CLUSTER_TYPES.ConfigMap, 'n', 'c')).toBeUndefined()
  expect(asked).toEqual([{ namespace: 'n', fieldSelector: 'metadata.name=c' }])
  items.push(map('n'))
  clock.advance(2_001)
  expect(await lookup(CLUSTER_TYPES.ConfigMap, 'n', 'c')).toMatchObject({ metadata: { namespace: 'n' } })
})

test('an object of another namespace is none, whatever an answer holds', async () => {
  const { client } = answering(map('other'))
  expect(await createLookup(client, createManualClock())(CLUSTER_TYPES.ConfigMap, 'n', 'c')).toBeUndefined()
})

test('misses are bounded: the oldest is asked for again', async () => {
  const { asked, client } = answering()
  const lookup = createLookup(client, createManualClock())
  for (let at = 0; at <= 1_000; at++) await lookup(CLUSTER_TYPES.ConfigMap, 'n', `c${at}`)
  await lookup(CLUSTER_TYPES.ConfigMap, 'n', 'c1000')
  await lookup(CLUSTER_TYPES.ConfigMap, 'n', 'c0')
  expect(asked).toHaveLength(1_002)
})
