import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClientResponse } from '../../../src/core/index.ts'
import { HALF_CLOSED_MS } from '../../../src/listen/connection.ts'
import { createSockets } from '../../support/sockets.ts'
import { get, post, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A client that says this, and then that no more will come; gives what it is answered, when the connection is over. */
async function sayAll(url: string, text: string, onSocket: (socket: Socket) => void = () => {}): Promise<string> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  sockets.closing({ close: () => socket.destroy() })
  onSocket(socket)
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.end(text)
  await new Promise<void>((resolve) =>
    socket
      .once('end', resolve)
      .once('error', () => resolve())
      .once('close', () => resolve()),
  )
  return answer
}

describe('a client that has ended its side', () => {
  it('gets its answer, and the connection ends with it', async () => {
    const listener = await startListener(sockets, (_request, response) => {
      setTimeout(() => response.end('the answer'), 100)
    })
    expect(await sayAll(listener.url, get('/'))).toMatch(/^HTTP\/1.1 200 OK.*the answer$/s)
    expect(await sayAll(listener.url, post('/', 'body'))).toMatch(/^HTTP\/1.1 200 OK.*the answer$/s)
  })

  it('gets the answers to all that it asked for', async () => {
    const listener = await startListener(sockets, (request, response) => {
      setImmediate(() => response.end(`[${request.url}]`))
    })
    const answer = await sayAll(listener.url, get('/1') + get('/2') + get('/3'))
    expect(answer.match(/\[\/\d\]/g)).toEqual(['[/1]', '[/2]', '[/3]'])
  })

  it('is taken to have gone when nothing has come for long', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => void open.push(response))
    const before = performance.now()
    expect(await sayAll(listener.url, get('/'))).toBe('')
    expect(performance.now() - before).toBeGreaterThan(HALF_CLOSED_MS / 2)
    await vi.waitFor(() => expect(open.map(({ destroyed }) => destroyed)).toEqual([true]))
  })

  it('that has really gone is noticed with the first byte for it', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => {
      open.push(response)
      response.write('begun')
    })
    await sayAll(listener.url, get('/'), (socket) => socket.once('data', () => socket.destroy()))
    await vi.waitFor(() => expect(open.map(({ destroyed }) => destroyed)).toEqual([true]), 10 * HALF_CLOSED_MS)
  })

  it('before its request is complete gets 400', async () => {
    const listener = await startListener(sockets, (request, response) => {
      request.resume().on('end', () => response.end('no'))
    })
    const answer = await sayAll(listener.url, 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf')
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
  })
})
