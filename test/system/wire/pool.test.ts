import { setTimeout as pause } from 'node:timers/promises'
import type { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Duplex, duplexPair } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { answering, OK, startPeer, RecordingHandler, turns } from '../../support/wire/harness.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const collected = (ref: WeakRef<object>): boolean => {
  collect()
  return ref.deref() === undefined
}

const sockets = createSockets()
afterEach(() => sockets.closeAll())

describe('a connection that was used', () => {
  it('is used again', async () => {
    const { send, connections } = await startPeer(sockets, answering(OK))
    for (let count = 0; count < 5; count++) expect(await send().over).toBe('end ok')
    expect(connections).toHaveLength(1)
  })

  it.each([
    ['the peer says so', OK.replace('\r\n', '\r\nconnection: close\r\n'), {}, {}],
    ['the peer closes it soon', OK.replace('\r\n', '\r\nkeep-alive: timeout=2\r\n'), {}, {}],
    ['more came than the answer', `${OK}x`, {}, {}],
    ['another answer came with it', OK + OK, {}, {}],
    ['it may not be kept at all', OK, {}, { keepMs: 0 }],
    ['HEAD was asked', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n', { method: 'HEAD' }, {}],
    ['204 has a length', 'HTTP/1.1 204 OK\r\ncontent-length: 2\r\n\r\n', {}, {}],
    ['it speaks HTTP/1.0', OK.replace('/1.1', '/1.0'), {}, {}],
  ])('is used no more when %s', async (_name, text, request, options) => {
    const { send, connections } = await startPeer(sockets, answering(text), options)
    for (let count = 0; count < 3; count++) expect(await send(request).over).toMatch(/^end/)
    expect(connections).toHaveLength(3)
  })

  it('returns no unsolicited response', async () => {
    const { send, connections } = await startPeer(sockets, answering(OK))
    expect(await send().over).toBe('end ok')
    connections[0]?.write(OK.replace('ok', 'no'))
    await expect.poll(() => connections[0]?.readableEnded).toBe(true)
    expect(await send().over).toBe('end ok')
    expect(connections).toHaveLength(2)
  })

  it('gives none that comes in the turn in which the next request does', async () => {
    const peers: Duplex[] = []
    const connect = (): Promise<Socket> => {
      const [ours, theirs] = duplexPair()
      peers.push(theirs)
      theirs.on('data', () => theirs.write(OK))
      // All that is asked of a socket beyond a stream.
      return Promise.resolve(Object.assign(ours, { setNoDelay: () => ours }) as unknown as Socket)
    }
    const peer = await startPeer(sockets, () => undefined, { connect })
    const second = new RecordingHandler()
    const first = new RecordingHandler({
      end: () => {
        peer.send({}, second)
        setImmediate(() => peers[0]?.write(OK.replace('ok', 'no')))
      },
    })
    expect(await peer.send({}, first).over).toBe('end ok')
    expect(await second.over).toBe('end ok')
    expect(peers).toHaveLength(2)
  })

  it('is closed after a while', async () => {
    const { connections, send } = await startPeer(sockets, answering(OK), { keepMs: 1 })
    expect(await send().over).toBe('end ok')
    await expect.poll(() => connections[0]?.readableEnded, { timeout: 10_000 }).toBe(true)
  }, 15_000)

  it('that the peer ended while a request was on it is lost, and nothing is sent again', async () => {
    let asked = 0
    const { send } = await startPeer(sockets, (socket) => {
      socket.on('data', () => {
        if (++asked === 2) socket.destroy()
        else socket.write(OK)
      })
    })
    expect(await send().over).toBe('end ok')
    expect(await send().over).toMatch(/^(?:WIRE_CLOSED|ECONNRESET)$/)
    await turns()
    expect(asked).toBe(2)
  })
})

describe('requests beyond the bound of connections', () => {
  const hold = () => {
    const held: Socket[] = []
    const asked: string[] = []
    const onConnection = (socket: Socket): void =>
      void socket.on('data', (data: Buffer) => {
        asked.push(/\/(\d+)/.exec(data.toString())?.[1] ?? '')
        held.push(socket)
      })
    return { held, asked, onConnection }
  }

  it('wait in the order in which they came', async () => {
    const { held, asked, onConnection } = hold()
    const { send, connections } = await startPeer(sockets, onConnection, { maxConnections: 2 })
    const recorded = Array.from({ length: 7 }, (_, index) => send({ path: `/${index}` }))
    for (let count = 2; count <= 7; count++) {
      await expect.poll(() => asked.length).toBe(count)
      held.shift()?.write(OK)
    }
    held.shift()?.write(OK)
    expect(await Promise.all(recorded.map(({ over }) => over))).toEqual(Array(7).fill('end ok'))
    expect(asked.slice(2)).toEqual(['2', '3', '4', '5', '6'])
    expect(connections).toHaveLength(2)
  })

  it('wait only so long', async () => {
    const { asked, onConnection } = hold()
    const { send } = await startPeer(sockets, onConnection, { maxConnections: 1, waitMs: 1 })
    const first = send({ path: '/1' })
    await expect.poll(() => asked).toEqual(['1'])
    expect(await send({ path: '/2' }).over).toBe('WIRE_CROWDED')
    expect(first.events).toEqual(['start'])
    expect(asked).toEqual(['1'])
  }, 15_000)

  it('get the place of a connection that is lost', async () => {
    const { held, asked, onConnection } = hold()
    const { send } = await startPeer(sockets, onConnection, { maxConnections: 1 })
    const [first, second] = [send({ path: '/1' }), send({ path: '/2' })]
    await expect.poll(() => asked).toEqual(['1'])
    held.shift()?.destroy()
    expect(await first.over).toMatch(/^(?:WIRE_CLOSED|ECONNRESET)$/)
    await expect.poll(() => asked).toEqual(['1', '2'])
    held.shift()?.write(OK)
    expect(await second.over).toBe('end ok')
  })
})

describe('a connection that cannot be made', () => {
  it('fails all waiting requests', async () => {
    const { send } = await startPeer(sockets, () => undefined, {
      connect: () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })),
    })
    const recorded = [send(), send(), send()]
    expect(await Promise.all(recorded.map(({ over }) => over))).toEqual(Array(3).fill('ECONNREFUSED'))
    expect(recorded[0]?.events).toEqual(['ECONNREFUSED'])
  })
})

describe('a request that is aborted while it waits', () => {
  /** A peer to which connections are made when the test says so. */
  async function startSlow() {
    const attempts: { readonly signal: AbortSignal; readonly open: () => void }[] = []
    const connect = (signal: AbortSignal): Promise<Socket> =>
      new Promise((resolve, reject) => {
        const [ours, theirs] = duplexPair()
        theirs.on('data', () => theirs.write(OK))
        const open = (): void => resolve(Object.assign(ours, { setNoDelay: () => ours }) as unknown as Socket)
        attempts.push({ signal, open })
        signal.addEventListener('abort', () => reject(new Error('given up')))
      })
    const peer = await startPeer(sockets, () => undefined, { connect, maxConnections: 2 })
    return { ...peer, attempts }
  }

  it('leaves at once, with the attempt that was made for it', async () => {
    const { send, attempts } = await startSlow()
    const [first, second] = [send(), send()]
    await turns()
    expect(attempts).toHaveLength(2)
    second.dispatched?.abort(new Error('gone'))
    expect(second.events).toEqual(['gone'])
    expect(attempts.filter(({ signal }) => signal.aborted)).toHaveLength(1)
    await turns()
    attempts.find(({ signal }) => !signal.aborted)?.open()
    expect(await first.over).toBe('end ok')
    second.dispatched?.abort(new Error('again'))
    expect(second.events).toEqual(['gone'])
  })

  it('leaves its place to those behind it', async () => {
    const { send, attempts } = await startSlow()
    const recorded = Array.from({ length: 5 }, () => send())
    await turns()
    for (const one of recorded.slice(0, 4)) one.dispatched?.abort(new Error('gone'))
    await turns()
    for (const { open } of attempts) open()
    await turns()
    for (const { open } of attempts) open()
    expect(await recorded[4]?.over).toBe('end ok')
    expect(recorded.slice(0, 4).flatMap(({ events }) => events)).toEqual(Array(4).fill('gone'))
  })

  it('keeps its body no longer', async () => {
    const { send } = await startSlow()
    let body: Buffer | null = Buffer.alloc(1024)
    const kept = new WeakRef(body.buffer)
    const recorded = send({ method: 'POST', body })
    body = null
    await turns()
    recorded.dispatched?.abort(new Error('gone'))
    expect(await recorded.over).toBe('gone')
    await expect.poll(() => collected(kept), { timeout: 10_000 }).toBe(true)
  })
})

describe('the end of a pool', () => {
  it('waits for what is running', async () => {
    const { send, pool, connections } = await startPeer(sockets, (socket) => void socket.on('data', () => undefined))
    const running = send()
    await expect.poll(() => running.events).toEqual(['start'])
    const closed = pool.close().then(() => 'closed')
    expect(await send().over).toBe('WIRE_POOL_CLOSED')
    expect(await Promise.race([closed, pause(20, 'waits')])).toBe('waits')
    connections[0]?.write(OK)
    expect(await running.over).toBe('end ok')
    expect(await closed).toBe('closed')
    await expect.poll(() => connections[0]?.readableEnded).toBe(true)
  })

  it('that is meant at once ends everything', async () => {
    const { send, pool } = await startPeer(sockets, () => undefined, { maxConnections: 1 })
    const recorded = [send(), send()]
    await expect.poll(() => recorded[0]?.events).toEqual(['start'])
    await pool.destroy()
    expect(await Promise.all(recorded.map(({ over }) => over))).toEqual(['WIRE_POOL_CLOSED', 'WIRE_POOL_CLOSED'])
    expect(await send(undefined, new RecordingHandler()).over).toBe('WIRE_POOL_CLOSED')
  })
})
