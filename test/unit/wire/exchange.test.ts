import type { Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { answering, OK, startPeer, RecordingHandler } from '../../support/wire/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Everything that a peer was sent. */
const recording = (text = '') => {
  const state = { received: '' }
  const onConnection = (socket: Socket): void =>
    void socket.on('data', (data: Buffer) => {
      state.received += data.toString('latin1')
      if (text !== '') socket.write(text)
    })
  return { state, onConnection }
}

describe('a streamed body', () => {
  it('goes out in chunks as it comes', async () => {
    const { state, onConnection } = recording()
    const { send, connections } = await startPeer(sockets, onConnection)
    const body = new PassThrough()
    const recorded = send({ method: 'POST', body })
    body.write('hello')
    await expect.poll(() => state.received).toMatch(/\r\n\r\n5\r\nhello\r\n$/)
    body.end('!')
    await expect.poll(() => state.received).toMatch(/hello\r\n1\r\n!\r\n0\r\n\r\n$/)
    connections[0]?.write(OK)
    expect(await recorded.over).toBe('end ok')
  })

  it('goes out as long as it was announced', async () => {
    const { state, onConnection } = recording()
    const { send, connections } = await startPeer(sockets, onConnection)
    const recorded = send({ method: 'POST', body: Readable.from(['ab', 'cd']), headers: ['content-length', '4'] })
    await expect.poll(() => state.received).toMatch(/content-length: 4\r\n\r\nabcd$/)
    connections[0]?.write(OK)
    expect(await recorded.over).toBe('end ok')
    send()
    await expect.poll(() => state.received).toMatch(/abcdGET /)
  })

  it.each([
    ['longer', ['ab', 'cd', 'GET /x HTTP/1.1\r\n\r\n']],
    ['shorter', ['ab']],
  ])('that is %s than announced ends its connection, and nothing beyond is sent', async (_name, pieces) => {
    const { state, onConnection } = recording()
    const { send, connections } = await startPeer(sockets, onConnection)
    const recorded = send({ method: 'POST', body: Readable.from(pieces), headers: ['content-length', '4'] })
    expect(await recorded.over).toBe('WIRE_REQUEST')
    await expect.poll(() => connections[0]?.readableEnded).toBe(true)
    expect(state.received).not.toContain('GET')
  })

  it.each([
    ['fails', (body: PassThrough) => body.destroy(new Error('broken')), 'broken'],
    ['breaks off', (body: PassThrough) => body.destroy(), 'WIRE_REQUEST'],
  ])('that %s has no end', async (_name, spoil, text) => {
    const { state, onConnection } = recording()
    const { send, connections } = await startPeer(sockets, onConnection)
    const body = new PassThrough()
    const recorded = send({ method: 'POST', body })
    body.write('hello')
    await expect.poll(() => state.received).toMatch(/hello/)
    spoil(body)
    expect(await recorded.over).toBe(text)
    await expect.poll(() => connections[0]?.readableEnded).toBe(true)
    expect(state.received).not.toMatch(/0\r\n\r\n$/)
  })

  it('that is answered early is not sent on, and its connection is not used again', async () => {
    const { onConnection } = recording(OK)
    const { send, connections } = await startPeer(sockets, onConnection)
    const body = new PassThrough()
    const recorded = send({ method: 'POST', body })
    expect(await recorded.over).toBe('end ok')
    expect(body.listenerCount('data')).toBe(0)
    expect(body.destroyed).toBe(false)
    expect(await send().over).toBe('end ok')
    expect(connections).toHaveLength(2)
  })

  it('waits for a peer that does not read', async () => {
    const { send, connections } = await startPeer(sockets, (socket) => void socket.pause())
    let given = 0
    const body = new Readable({
      read() {
        given += 65_536
        this.push(Buffer.alloc(65_536))
      },
    })
    const recorded = send({ method: 'POST', body })
    let last = -1
    await expect.poll(() => given > 0 && last === (last = given), { interval: 100, timeout: 10_000 }).toBe(true)
    expect(given).toBeLessThan(64 * 1024 * 1024)
    recorded.control?.abort(new Error('enough'))
    expect(await recorded.over).toBe('enough')
    connections[0]?.destroy()
  })
})

describe('a handler', () => {
  it('that aborts before the request is out leaves a connection as good as before', async () => {
    const { state, onConnection } = recording(OK)
    const { send, connections } = await startPeer(sockets, onConnection)
    const recorded = send(
      { path: '/1' },
      new RecordingHandler({ start: (control) => control.abort(new Error('gone')) }),
    )
    expect(await recorded.over).toBe('gone')
    expect(await send({ path: '/2' }).over).toBe('end ok')
    expect(connections).toHaveLength(1)
    expect(state.received).not.toContain('GET /1 ')
  })

  it('that aborts an answer ends the connection, and hears of it once', async () => {
    const { send, connections } = await startPeer(sockets, answering(OK))
    const recorded = send({}, new RecordingHandler({ '200': (control) => control.abort(new Error('gone')) }))
    expect(await recorded.over).toBe('gone')
    expect(recorded.events).toEqual(['start', '200', 'gone'])
    expect(recorded.body).toBe('')
    await expect.poll(() => connections[0]?.readableEnded).toBe(true)
  })

  it('whose exchange is over has no hold of the connection', async () => {
    const { send, connections } = await startPeer(sockets, answering(OK))
    const first = send()
    await first.over
    const second = send({}, new RecordingHandler({ start: () => first.control?.abort(new Error('late')) }))
    first.control?.pause()
    expect(await second.over).toBe('end ok')
    expect(first.events).toEqual(['start', '200', 'end'])
    expect(connections).toHaveLength(1)
  })

  it.each(['start', '200', 'data', 'end'])('that throws at %s gets the error', async (event) => {
    const fail = (): never => {
      throw new Error('thrown')
    }
    const { send } = await startPeer(sockets, answering(OK))
    const recorded = send({}, new RecordingHandler({ [event]: fail }))
    await expect.poll(() => recorded.events).toContain('thrown')
    expect(recorded.events.filter((text) => text === 'thrown')).toHaveLength(1)
    expect(await send().over).toBe('end ok')
  })

  it('that pauses is given no more, and the connection is read again for the next', async () => {
    const large = 'x'.repeat(1024 * 1024)
    const { send, connections } = await startPeer(
      sockets,
      answering(`HTTP/1.1 200 OK\r\ncontent-length: ${large.length}\r\n\r\n${large}`),
    )
    let paused = 0
    const recorded = send(
      {},
      new RecordingHandler({
        data: (control) => {
          paused++
          control.pause()
          setImmediate(() => control.resume())
        },
      }),
    )
    expect(await recorded.over).toHaveLength(large.length + 4)
    expect(paused).toBeGreaterThan(1)
    expect(await send().over).toHaveLength(large.length + 4)
    expect(connections).toHaveLength(1)
  })
})

describe('time', () => {
  it('for the head of an answer is bounded', async () => {
    const { send } = await startPeer(sockets, () => undefined, { bounds: { firstByteMs: 20, idleMs: 0 } })
    expect(await send().over).toBe('WIRE_FIRST_BYTE')
  })

  it('does not pass while a body is still on its way', async () => {
    const { send, connections } = await startPeer(sockets, recording().onConnection, {
      bounds: { firstByteMs: 20, idleMs: 0 },
    })
    const body = new PassThrough()
    const recorded = send({ method: 'POST', body })
    body.write('a')
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(recorded.events).toEqual(['start'])
    body.end()
    expect(await recorded.over).toBe('WIRE_FIRST_BYTE')
    expect(connections).toHaveLength(1)
  })

  it('of silence within an answer is bounded, unless it is we who do not read', async () => {
    const cut = 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok'
    const bounds = { firstByteMs: 0, idleMs: 20 }
    const { send } = await startPeer(sockets, answering(cut), { bounds })
    expect(await send().over).toBe('WIRE_IDLE')
    const recorded = send({}, new RecordingHandler({ data: (control) => control.pause() }))
    await expect.poll(() => recorded.body).toBe('ok')
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(recorded.events).toEqual(['start', '200'])
    recorded.control?.resume()
    expect(await recorded.over).toBe('WIRE_IDLE')
  })
})

describe('another protocol', () => {
  const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'

  it('gets the socket, and what came with the head', async () => {
    const { send, connections } = await startPeer(sockets, answering(`${SWITCH}early`))
    const recorded = send({ upgrade: 'x' })
    expect(await recorded.over).toBe('upgraded')
    let text = ''
    recorded.socket?.on('data', (data: Buffer) => (text += data.toString())).resume()
    await expect.poll(() => text).toBe('early')
    connections[0]?.write('late')
    await expect.poll(() => text).toBe('earlylate')
    recorded.control?.abort(new Error('gone'))
    expect(recorded.socket?.destroyed).toBe(false)
    recorded.socket?.destroy()
  })

  it.each([
    ['was not asked for', SWITCH, {}],
    ['has no name', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', { upgrade: 'x' }],
  ])('that %s is a broken answer', async (_name, text, request) => {
    const { send } = await startPeer(sockets, answering(text))
    expect(await send(request).over).toBe('WIRE_MALFORMED')
  })

  it('that is refused leaves an answer like all, and no connection', async () => {
    const { send, connections } = await startPeer(sockets, answering(OK))
    expect(await send({ upgrade: 'x' }).over).toBe('end ok')
    expect(await send().over).toBe('end ok')
    expect(connections).toHaveLength(2)
  })
})
