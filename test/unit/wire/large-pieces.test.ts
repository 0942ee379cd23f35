import type { Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { BodySender } from '../../../src/wire/body-sender.ts'
import { ServedConnection } from '../../../src/wire/index.ts'

const LARGE = Buffer.alloc(1024 * 1024)

/** A socket that accepts writes at once, or on demand. */
function socketThat(takes: 'at once' | 'later') {
  const waiting: (() => void)[] = []
  const socket = new Duplex({
    read() {},
    write: (_chunk, _encoding, callback) => void (takes === 'at once' ? callback() : waiting.push(callback)),
  })
  const take = (): void => waiting.splice(0).forEach((one) => one())
  return { socket: socket as unknown as Socket, take }
}

describe('a piece that is larger than what may wait', () => {
  function answering(takes: 'at once' | 'later') {
    const { socket, take } = socketThat(takes)
    const seen: (boolean | string)[] = []
    const options = {
      deadlines: { headersMs: 1000, requestMs: 0, keepAliveMs: 1000 },
      maxHeadBytes: 16_384,
      keepAlive: undefined,
    }
    void new ServedConnection(socket, options, {
      isOver: false,
      servesUpgrade: () => false,
      take: (_request, response) => {
        response.on('drain', () => seen.push('drain'))
        response.writeHead(200, ['content-length', String(2 * LARGE.length)])
        seen.push(response.write(LARGE), response.writableNeedDrain)
      },
      onUnreadable() {},
      stall() {},
    })
    socket.emit('data', Buffer.from('GET / HTTP/1.1\r\nHost: h\r\n\r\n'))
    return { seen, take, drained: () => socket.emit('drain') }
  }

  it('stops no answer when it is taken at once', () => {
    const { seen, drained } = answering('at once')
    drained()
    expect(seen).toEqual([true, false])
  })

  it('stops an answer until it is taken', () => {
    const { seen, drained } = answering('later')
    drained()
    expect(seen).toEqual([false, true, 'drain'])
  })

  it.each([
    ['stops no body when it is taken at once', 'at once', []],
    ['stops a body until it is taken', 'later', [true, false]],
  ] as const)('%s', (_what, takes, stalls) => {
    const { socket } = socketThat(takes)
    const seen: boolean[] = []
    const stream = new PassThrough()
    const sender = new BodySender(socket, stream, undefined, {
      onBodyStall: (isStalled) => void seen.push(isStalled),
      onBodyEnd() {},
      onBodyError() {},
    })
    sender.start()
    stream.emit('data', LARGE)
    sender.drained()
    expect(seen).toEqual(stalls)
  })
})
