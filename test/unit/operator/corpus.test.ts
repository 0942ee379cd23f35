import { afterEach, describe, expect, test } from 'vitest'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionOf, object } from '../../support/operator/objects.ts'
import { proxyOf, readPublished } from '../../support/operator/published.ts'
import { closeAll, type Closers, startController } from '../../support/operator/start-controller.ts'

// Published manifests of another operator in a cluster, with only the group changed.
const closers: Closers = []
afterEach(() => closeAll(closers))

describe('a published MCPRemoteProxy', () => {
  test.each(readPublished())('$shape: $becomes', async (published) => {
    const cluster = createFakeCluster()
    const proxy = proxyOf(published)
    for (const { kind, name, spec } of published.objects) cluster.put(object(kind, name, spec))
    const { observed } = await startController(cluster, closers)
    const ready = conditionOf(observed.workload('MCPRemoteProxy', 'n', proxy.name), 'Ready')
    const hasPods = cluster.stored('Deployment', `n/${proxy.name}-extauth`) !== undefined
    if (published.becomes === 'pods') expect([hasPods, ready?.reason]).toEqual([true, 'DeploymentPending'])
    else {
      expect(hasPods).toBe(false)
      expect(`${ready?.reason} ${ready?.message}`).toContain(published.becomes)
      // A cluster has no command line.
      expect(ready?.message).not.toMatch(/--[a-z]|loopback|ProxyConfig/)
    }
  })
})
