import { createServer as createTcpServer } from 'node:net'
import { createServer } from 'node:https'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import { ANONYMOUS, documents, type Folder, openFolder } from '../../../support/examine/check/rig.ts'

const sockets = createSockets()
let folder: Folder
beforeAll(async () => {
  folder = await openFolder()
})
afterEach(async () => {
  vi.useRealTimers()
  await sockets.closeAll()
})
afterAll(() => folder.remove())

it('a backend that completes one handshake and then stops responding is reported with the limit that was reached', async () => {
  const secure = createServer(TLS.server)
  const second = Promise.withResolvers<void>()
  let connections = 0
  // The first connection is the look at the address, the second one is for the request.
  const server = createTcpServer((socket) => {
    connections++
    if (connections === 1) secure.emit('connection', socket)
    else second.resolve()
  })
  const target = `https://${await sockets.listen(server)}/mcp`
  const route = { target, timeouts: { connect: '0s' }, targetTls: { insecureSkipVerify: true } }
  await folder.write('proxy.yaml', documents(route, { type: 'unauthenticated' }, { auth: ANONYMOUS }))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const checked = folder.checkIn({})
  await second.promise
  // Effects of a connection's timer follow some turns later.
  for (let step = 0; step < 40; step++) {
    vi.advanceTimersByTime(500)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  const { checks } = await checked
  expect(checks.find(({ check }) => check === 'mcp')?.detail).toContain(
    'no response in time; the limit is 10 s (fixed)',
  )
})
