import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { ListenerOptions } from '../../../src/listen/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { get, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A listener that takes what this server accepts, as a worker does. */
async function startTaker(options: Partial<ListenerOptions<unknown>> = {}) {
  const listener = await startListener(sockets, (_request, response) => void response.end('ok'), {
    acceptedAt: 'http://elsewhere',
    ...options,
  })
  const door = createServer((socket) => void listener.take(socket))
  sockets.closing(door.listen(0, '127.0.0.1'))
  await once(door, 'listening')
  return { listener, at: `http://127.0.0.1:${(door.address() as AddressInfo).port}` }
}

describe('a connection that another process has accepted', () => {
  it('is closed by the stop when nothing is asked on it, and not before', async () => {
    const { listener, at } = await startTaker()
    const client = rawConnect(at, get('/'))
    await client.until(/ok/)
    expect(client.socket.readableEnded).toBe(false)
    listener.stop()
    await client.ended
    await listener.emptied(60_000)
  })

  it('is refused when its headers do not arrive in time', async () => {
    const { at } = await startTaker({ deadlines: { headersMs: 200 } })
    const client = rawConnect(at, 'GET / HTTP/1.1\r\nHost: h\r\nX-Slow: ')
    await client.ended
    expect(client.text()).toMatch(/^HTTP\/1\.1 408 /)
  })
})
