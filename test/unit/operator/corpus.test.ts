import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionOf, object } from '../../support/operator/objects.ts'
import { closeAll, type Closers, startController } from '../../support/operator/start-controller.ts'

// What becomes in a cluster of manifests that are published for another operator, with no change but the group.
interface Published {
  readonly shape: string
  /** `pods`, or the field or reason that a refusal names. */
  readonly becomes: string
  readonly complete?: boolean
  readonly objects: readonly { readonly kind: string; readonly name: string; readonly spec: object }[]
}
const FILE = path.join(import.meta.dirname, '../../support/operator/corpus/remote-proxies.yaml')
const PUBLISHED = parse(readFileSync(FILE, 'utf8')) as readonly Published[]

const closers: Closers = []
afterEach(() => closeAll(closers))

describe('a published MCPRemoteProxy', () => {
  test.each(PUBLISHED)('$shape: $becomes', async ({ objects, becomes }) => {
    const cluster = createFakeCluster()
    const proxy = objects.find(({ kind }) => kind === 'MCPRemoteProxy')
    if (proxy === undefined) throw new Error('no MCPRemoteProxy')
    for (const { kind, name, spec } of objects) cluster.put(object(kind, name, spec))
    const { observed } = await startController(cluster, closers)
    const ready = conditionOf(observed.workload('MCPRemoteProxy', 'n', proxy.name), 'Ready')
    const hasPods = cluster.stored('Deployment', `n/${proxy.name}-extauth`) !== undefined
    if (becomes === 'pods') expect([hasPods, ready?.reason]).toEqual([true, 'DeploymentPending'])
    else {
      expect(hasPods).toBe(false)
      expect(`${ready?.reason} ${ready?.message}`).toContain(becomes)
      // A cluster has no command line.
      expect(ready?.message).not.toMatch(/--[a-z]|loopback|ProxyConfig/)
    }
  })
})
