import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { compareReaching } from '../../support/proxy/reaching.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it('nothing reaches a backend that Node does not take for the same', { timeout: 60_000 }, async () => {
  const { whole, reached, differences } = await compareReaching(sockets, 20261125, 200)
  expect(differences).toEqual([])
  expect(Math.min(reached, whole - reached)).toBeGreaterThan(10)
})
