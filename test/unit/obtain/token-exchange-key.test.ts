import { afterEach, expect, it } from 'vitest'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, issued, json, startEndpoint } from '../../support/obtain/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it('another token of the same caller is exchanged again, the same one is not', async () => {
  const endpoint = await startEndpoint(sockets, json(issued('t')))
  const { exchange } = createRig(sockets)
  const route = exchange({ tokenUrl: endpoint.url, audience: 'backend', clientId: 'us' })
  const caller = createCaller()
  const again = { ...caller, tokenDigest: 'another' }
  await route.header(caller)
  await route.header({ ...caller })
  expect(endpoint.received).toHaveLength(1)
  await route.header(again)
  expect(endpoint.received).toHaveLength(2)
})
