import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { monotonic } from '../../../src/core/index.ts'
import { ServedConnection, type ServedOwner } from '../../../src/wire/index.ts'

/** A connection with scripted bytes, and its server. */
function start(take: ServedOwner['take'] = () => {}) {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, callback) => callback() })
  const errors: Error[] = []
  const owner: ServedOwner = {
    isOver: false,
    servesUpgrade: () => false,
    take,
    onUnreadable: (error) => void errors.push(error),
    stall() {},
  }
  const deadlines = { headersMs: 100, requestMs: 1000, keepAliveMs: 0 }
  const options = { deadlines, maxHeadBytes: 16_384, keepAlive: undefined }
  const connection = new ServedConnection(socket as unknown as Socket, options, owner)
  return { connection, errors, say: (text: string) => socket.emit('data', Buffer.from(text)) }
}

const HEAD = 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n'

describe('a connection that is served', () => {
  it('does not take an error of who serves it for one of the client', () => {
    const { say, errors } = start(() => {
      throw new TypeError('ours')
    })
    expect(() => say(`${HEAD}ab${HEAD}ab`)).toThrow('ours')
    expect(errors).toEqual([])
  })
})

describe('a body that has come with its head', () => {
  const CHUNKED = 'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n'

  it.each([
    ['with a length', `${HEAD}ab`, 'ab'],
    ['of no bytes', HEAD.replace('2', '0'), ''],
    ['in one chunk', `${CHUNKED}2\r\nab\r\n0\r\n\r\n`, 'ab'],
    ['in two small chunks', `${CHUNKED}2\r\nab\r\n1\r\nc\r\n0\r\n\r\n`, 'abc'],
    ['in a large chunk and a small one', `${CHUNKED}1000\r\n${'a'.repeat(4096)}\r\n1\r\nc\r\n0\r\n\r\n`, undefined],
    ['to a part', `${HEAD}a`, undefined],
  ])('is had at once where it is in one piece: %s', (_what, text, whole) => {
    const taken: (string | undefined)[] = []
    const { say } = start((request) => void taken.push(request.takeWhole()?.toString()))
    say(text)
    expect(taken).toEqual([whole])
  })
})

describe('the deadline of a request', () => {
  afterEach(() => vi.restoreAllMocks())

  /** By a clock that the test moves. */
  function startAt() {
    const now = vi.spyOn(performance, 'now').mockReturnValue(0)
    return { ...start((_request, response) => void response.end('x')), pass: (ms: number) => now.mockReturnValue(ms) }
  }

  it('counts from its first byte', () => {
    const { connection, errors, say, pass } = startAt()
    say(HEAD.slice(0, 10))
    pass(90)
    connection.look(monotonic(90))
    say(`${HEAD.slice(10)}a`)
    connection.look(monotonic(999))
    expect(errors).toEqual([])
    connection.look(monotonic(1000))
    expect(errors).toMatchObject([{ code: 'WIRE_REQUEST_LATE' }])
  })

  it('starts over with the next one, and a head has its own', async () => {
    const { connection, errors, say, pass } = startAt()
    say(HEAD)
    await new Promise((resolve) => setImmediate(resolve))
    pass(900)
    say('abGET / HT')
    connection.look(monotonic(999))
    expect(errors).toEqual([])
    connection.look(monotonic(1000))
    expect(errors).toHaveLength(1)
  })

  it('is none while nothing of one has come', () => {
    const { connection, errors, say } = startAt()
    say(`${HEAD}ab`)
    connection.look(monotonic(1_000_000))
    expect(errors).toEqual([])
  })
})
